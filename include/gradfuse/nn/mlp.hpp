#pragma once
// A multi-layer perceptron without autograd: forward and backward written out, gradients in the precision asked for.
#include <gradfuse/backend.hpp>
#include <gradfuse/nn/parameter.hpp>
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gradfuse::nn {

/// Between the layers. `kGelu` is the exact form `x * Phi(x)` (Hendrycks & Gimpel 2016, arXiv:1606.08415).
enum class Activation : std::uint8_t { kRelu, kGelu };

/// Between linear map and activation of the hidden layers.
/// `kLayer`: Ba et al. 2016, arXiv:1607.06450. `kBatch`: Ioffe & Szegedy 2015, arXiv:1502.03167. Both with eps 1e-5.
///
/// Batch statistics are those of one micro-batch. The running statistics (used by `evaluate` only) move by
/// `1 - (1 - 0.1)^(1/N)` for each of a window's N micro-batches, so a window moves them as far as one large batch does
/// with momentum 0.1. What still differs from one large batch:
/// - the variance within micro-batches lacks the variance between their means, and its factor rows/(rows-1) is larger;
/// - later micro-batches of a window weigh a little more than earlier ones;
/// - training normalises with the micro-batch's own mean and variance, so gradients differ too;
/// - a window with fewer micro-batches than announced moves the statistics less; a skipped step moves them all the
/// same.
enum class Norm : std::uint8_t { kNone, kLayer, kBatch };

struct MlpOptions {
  /// Inputs, hidden layers, classes: {64, 128, 128, 10}. Two entries or more, each 1 .. 2^24.
  std::vector<std::size_t> widths;
  Activation activation = Activation::kRelu;
  Norm norm = Norm::kNone;
  /// Of the parameters that forward and backward read and of the gradients: float32, float16 or bfloat16.
  DType precision = DType::kFloat32;
  /// Of the initial weights: normal with variance 2/inputs (He et al. 2015, arXiv:1502.01852); biases are 0.
  std::uint64_t seed = 0;
  /// Only `Norm::kBatch` needs to know it.
  std::size_t micro_batches_per_window = 1;
  /// Where parameters, gradients and activations live, and what computes. CPU and GPU differ in the order in which
  /// matrix products add, and in nothing else.
  std::shared_ptr<const Backend> backend = cpu_backend();
};

struct Evaluation {
  double loss = 0;      ///< mean cross-entropy over the rows, in nats
  double accuracy = 0;  ///< fraction of rows whose label has the largest logit (of equals, the first)
};

/// Classifier: linear, norm, activation for each hidden layer, then a linear layer, softmax and cross-entropy.
///
/// With 16-bit precision the model copy starts as the master rounded to nearest even; whoever changes the master after
/// that writes the copy too (the optimizer step does). Activations and all arithmetic are float32. One thread at a
/// time.
class Mlp {
 public:
  /// @throws Error  an option is out of its range.
  explicit Mlp(const MlpOptions& options);
  ~Mlp();
  Mlp(Mlp&&) noexcept;
  Mlp& operator=(Mlp&&) noexcept;

  /// In the order of the layers, the same for the same options: "layer0.weight", "layer0.bias", "layer0.norm.weight",
  /// "layer0.norm.bias".
  std::span<const Parameter> parameters() const noexcept;

  /// The running statistics of batch normalisation, which a checkpoint must keep; else empty.
  std::span<const NamedBuffer> buffers() const noexcept;

  /// One micro-batch: overwrites every gradient with that of `loss_scale * mean loss` and moves the running statistics.
  /// 16-bit gradients are rounded to nearest even, and overflow to inf. Allocates only for more rows than ever before;
  /// on a GPU it waits for nothing.
  ///
  /// @param features    row-major [labels.size(), widths.front()], finite.
  /// @param labels      [rows], each 0 .. widths.back() - 1.
  /// @param loss_scale  positive and finite; multiplies the gradient where it starts, at the logits.
  /// @throws Error      before anything changes: no rows, a wrong number of features, a feature that is not finite, a
  ///                    label out of range, one row under batch normalisation.
  void backward(std::span<const float> features, std::span<const std::int32_t> labels, float loss_scale = 1.0f);

  /// The sum of the cross-entropies of all rows since the last call, in nats, not scaled. Waits for the device.
  double take_loss_sum();

  /// Inference: batch normalisation uses its running statistics. Changes nothing that can be seen, and holds the
  /// activations of no more than 256 rows.
  /// @throws Error  as `backward`, but one row is always enough.
  Evaluation evaluate(std::span<const float> features, std::span<const std::int32_t> labels);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gradfuse::nn
