#pragma once
// Training an `nn::Mlp` on the digits through micro-batches: options, what each step tells, and the result.
#include <gradfuse/backend.hpp>
#include <gradfuse/loss_scaler.hpp>
#include <gradfuse/nn/digits.hpp>
#include <gradfuse/nn/mlp.hpp>
#include <gradfuse/optimizer.hpp>
#include <gradfuse/unfused_chain.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gradfuse::train {

/// How the learning rate follows the effective batch, the rows of a full window: not at all, in proportion (Goyal et
/// al. 2017, arXiv:1706.02677), or with the square root (Krizhevsky 2014, arXiv:1404.5997; usual with Adam).
enum class LrScaling : std::uint8_t { kNone, kLinear, kSqrt };

/// The effective batch at which all three give the same learning rate.
inline constexpr std::size_t kLrBaseBatch = 128;

struct MlpTrainOptions {
  std::size_t micro_batch = 32;  ///< Rows of a micro-batch, at least 1; the last of an epoch may have fewer.
  std::size_t accum_steps = 4;   ///< Micro-batches of a window, at least 1; the last of an epoch may have fewer.
  std::size_t epochs = 30;
  std::uint64_t seed = 0;  ///< Of the initial parameters and of the order of rows.

  std::vector<std::size_t> hidden = {128, 128};  ///< Widths of the hidden layers.
  nn::Activation activation = nn::Activation::kGelu;
  nn::Norm norm = nn::Norm::kNone;
  DType precision = DType::kFloat16;  ///< Of gradients and model copy: float32, float16 or bfloat16.

  /// AdamW, Adam or SGD; the learning rate is the one at `kLrBaseBatch`.
  UnfusedChain::Options optimizer = AdamWOptions{.lr = 3e-3};
  LrScaling lr_scaling = LrScaling::kNone;
  std::optional<double> max_grad_norm = 1.0;
  /// Its floor decides when training is given up: a mean loss whose gradients overflow FP16 at 2^-10 has diverged.
  LossScaler loss_scaler{{.min_scale = 0x1p-10}};
  bool is_unfused = false;  ///< Through `UnfusedChain` instead of `Window` and `Optimizer`.
  std::shared_ptr<const Backend> backend = cpu_backend();  ///< Of the model too.
};

/// One window.
struct StepRecord {
  std::size_t epoch = 0;  ///< From 1.
  std::size_t step = 0;   ///< From 1, over all epochs, skipped ones included.
  double loss = 0;        ///< Mean over the window's rows, in nats, before the step.
  double lr = 0;          ///< After scaling.
  StepReport report = {};
  std::string non_finite_tensor = {};  ///< Name of the tensor that `report.non_finite` means; empty if it means none.
  double samples_per_second = 0;       ///< Forward, backward and step of this window.
  std::size_t resident_bytes = 0;      ///< Of the process, in host memory.
  std::size_t device_bytes = 0;        ///< In use of a GPU's memory pool.
};

struct EpochRecord {
  std::size_t epoch = 0;  ///< From 1.
  double loss = 0;        ///< Mean over the epoch's rows, while they were trained on.
  nn::Evaluation test = {};
  std::size_t steps = 0;
  std::size_t skipped_steps = 0;
  double samples_per_second = 0;
};

struct TrainSummary {
  nn::Evaluation test = {};
  double seconds = 0;  ///< In forward, backward and steps; without evaluation and callbacks.
  double samples_per_second = 0;
  std::size_t peak_bytes = 0;         ///< Resident memory of the process.
  std::size_t device_peak_bytes = 0;  ///< Of a GPU's memory pool.
  std::size_t steps = 0;              ///< Skipped ones included.
  std::size_t skipped_steps = 0;
  float loss_scale = 1.0f;  ///< At the end.
  std::string parameters_digest = {};
};

/// Either may be empty. What they throw ends the training.
struct TrainCallbacks {
  std::function<void(const StepRecord&)> on_step = {};
  std::function<void(const EpochRecord&)> on_epoch = {};
};

/// What `train_mlp` checks before it starts.
/// @throws Error  a count is 0, a rate is out of its range, `data` is empty, or batch normalisation would meet a
///                micro-batch of one row.
void check_options(const MlpTrainOptions& options, const nn::DigitsSplit& data);

/// The learning rate that the options come to with `num_rows` training rows; the effective batch is `rows_per_window`.
double effective_lr(const MlpTrainOptions& options, std::size_t num_rows);

/// Rows of a full window, or all of them if they do not fill one; the last window of an epoch may have fewer.
std::size_t rows_per_window(const MlpTrainOptions& options, std::size_t num_rows);

/// Trains for `epochs` passes over `data.train`, each in a new order, and evaluates on `data.test`. A micro-batch
/// weighs as many rows as it has, so the loss is the mean over the window's rows however they are cut. The same
/// options, data, machine and number of threads (the backend's and OpenMP's, which oneDNN uses) give the same bits.
///
/// @throws Error  as `check_options`; or training has diverged: a whole epoch is skipped, or a step is skipped at the
///                floor of the loss scale. The message names the tensor and what to try.
TrainSummary train_mlp(const MlpTrainOptions& options, const nn::DigitsSplit& data,
                       const TrainCallbacks& callbacks = {});

}  // namespace gradfuse::train
