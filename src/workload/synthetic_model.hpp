#pragma once
// A model without a forward pass: parameters, their 16-bit copy and one micro-batch's gradients, made up.
#include <gradfuse/parameter_set.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/backend/buffer.hpp"
#include "src/workload/huge_pages.hpp"
#include "src/workload/tensor_shapes.hpp"

namespace gradfuse::workload {

/// Sets every element to a value with a random sign and mantissa and this exponent: a magnitude in [2^e, 2^(e+1)).
/// Each thread writes the part that a pass would give to it, so that pages lie near their threads.
void fill(const TensorView& view, int exponent, int threads);

/// Tensors one after another in one piece of a backend's memory, in the host's on huge pages, each at a cache line.
class FlatArray {
 public:
  /// Zeros. @throws Error  there is not so much memory.
  FlatArray(const TensorShapes& tensors, DType dtype, const Backend& backend);
  /// Filled, as `fill` does.
  FlatArray(const TensorShapes& tensors, DType dtype, const Backend& backend, int exponent);
  const std::vector<TensorView>& views() const noexcept { return views_; }

 private:
  std::optional<HugePages> host_memory_;
  Buffer device_memory_;
  TensorView whole_;
  std::vector<TensorView> views_;
};

struct ModelOptions {
  DType grad_dtype = DType::kFloat16;
  std::optional<DType> model_dtype = std::nullopt;  ///< float16 or bfloat16; none: no model copy.
  std::shared_ptr<const Backend> backend = cpu_backend();
};

/// The copy that usually goes with such gradients: none beside float32, else of the same type.
std::optional<DType> usual_model_dtype(DType grad_dtype);

/// Gradients carry a loss scale of `kLossScale`, and are large enough for clipping to `kMaxGradNorm` to be active from
/// one element on. Every micro-batch has the same ones, in the same memory, as a training loop's backward pass does.
class SyntheticModel {
 public:
  static constexpr double kLossScale = 512.0;
  static constexpr double kMaxGradNorm = 0.5;

  /// @throws Error  there is not enough memory.
  SyntheticModel(const TensorShapes& tensors, const ModelOptions& options);
  SyntheticModel(const SyntheticModel&) = delete;  // a `ParameterSet` in use stays where it is
  SyntheticModel& operator=(const SyntheticModel&) = delete;

  const ParameterSet& params() const noexcept { return params_; }
  std::span<const ConstTensorView> grads() const noexcept { return grad_views_; }

 private:
  FlatArray param_, grad_;
  std::optional<FlatArray> model_;
  std::vector<ConstTensorView> grad_views_;
  ParameterSet params_;
};

}  // namespace gradfuse::workload
