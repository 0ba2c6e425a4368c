#pragma once
// A model, its optimizer and its loss scale; trains them an epoch at a time.
#include <gradfuse/nn/mlp.hpp>
#include <gradfuse/parameter_set.hpp>
#include <gradfuse/train/train_mlp.hpp>

#include "src/train/window_stepper.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace gradfuse::train {

/// Stays where it is: the stepper refers to the parameter set.
class MlpTrainer {
 public:
  /// @throws Error  as `check_options`. `data` must outlive it.
  MlpTrainer(const MlpTrainOptions& options, const nn::DigitsSplit& data);
  MlpTrainer(const MlpTrainer&) = delete;
  MlpTrainer& operator=(const MlpTrainer&) = delete;

  /// Visits the training rows in this order. `on_step` may be empty.
  /// @throws Error  training has diverged.
  EpochRecord run_epoch(std::span<const std::size_t> order, const std::function<void(const StepRecord&)>& on_step);

  TrainSummary summary();
  const ParameterSet& params() const noexcept { return params_; }

 private:
  /// The gradients of one micro-batch.
  void add_micro_batch(std::span<const std::size_t> rows, bool is_last);
  /// One window over `rows`.
  StepRecord run_window(std::span<const std::size_t> rows);

  const MlpTrainOptions options_;
  const nn::DigitsSplit& data_;
  nn::Mlp model_;
  ParameterSet params_;
  std::vector<ConstTensorView> grads_;
  double lr_;
  std::unique_ptr<WindowStepper> stepper_;
  LossScaler scaler_;
  std::vector<float> features_;  // of one micro-batch
  std::vector<std::int32_t> labels_;
  std::size_t epochs_ = 0, steps_ = 0, skipped_steps_ = 0;
  double seconds_ = 0;
};

}  // namespace gradfuse::train
