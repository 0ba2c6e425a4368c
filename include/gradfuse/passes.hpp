#pragma once
// The single-purpose passes: what the fused ones are made of, and the unfused chain that they are compared with.
#include <gradfuse/backend.hpp>
#include <gradfuse/optimizer.hpp>
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace gradfuse {

class WorkTable;

/// Tensors that a pass reads in one sweep, checked once when the list is made. All on one device; any mix of dtypes.
class ConstTensorList {
 public:
  /// @throws Error  a pointer is null or not aligned to its element, or a device is not the backend's; names the index.
  explicit ConstTensorList(std::vector<ConstTensorView> views, std::shared_ptr<const Backend> backend = cpu_backend());

  std::span<const ConstTensorView> views() const noexcept { return views_; }
  const WorkTable& table() const noexcept { return *table_; }
  const Backend& backend() const noexcept { return *backend_; }

 private:
  std::shared_ptr<const Backend> backend_;
  std::vector<ConstTensorView> views_;
  std::shared_ptr<const WorkTable> table_;
};

/// Tensors that a pass writes. @throws Error  as above, or two of them overlap.
class TensorList : public ConstTensorList {
 public:
  explicit TensorList(std::vector<TensorView> views, std::shared_ptr<const Backend> backend = cpu_backend());
  std::span<const TensorView> writable() const noexcept { return writable_; }

 private:
  std::vector<TensorView> writable_;
};

// Every pass throws `Error` before it writes when the lists differ in number of tensors or in a tensor's numel, when a
// dtype does not fit, or when a tensor partly overlaps its counterpart; the same memory with the same dtype is in
// place.

/// out = 0, any dtype.
void zero(const TensorList& out);

/// out = factor * in, computed in FP32 and rounded once. `in` of any dtype, float64 being rounded to FP32 first; `out`
/// float32, float16 or bfloat16.
/// @param found_nonfinite  Raised if any stored value is inf or NaN, a finite product that rounds to an infinite FP16
///                         included; never lowered. May be null.
void scale(const ConstTensorList& in, const TensorList& out, float factor, bool* found_nonfinite = nullptr);

/// out = in, rounded to nearest even; NaN stays NaN, overflow becomes inf. Dtypes as for `scale`.
void cast(const ConstTensorList& in, const TensorList& out);

/// out = fma(a, x, b * y). x of any dtype; y and out float32.
void axpby(float a, const ConstTensorList& x, float b, const ConstTensorList& y, const TensorList& out);

/// The L2 norm over all tensors, of FP32 values (float64 is rounded first), squares and sums in FP64, in an order that
/// depends on the sizes alone. 0 for no elements; inf or NaN if a value is.
double l2_norm(const ConstTensorList& tensors);
std::vector<double> l2_norm_per_tensor(const ConstTensorList& tensors);
/// The largest magnitude; NaN if any value is NaN. 0 for no elements.
double inf_norm(const ConstTensorList& tensors);

/// tensors *= min(1, max_norm / (norm + 1e-6)); with a coefficient of 1 no byte is written. A norm that is NaN makes
/// everything NaN, as in torch. Not float64.
/// @throws Error  `max_norm` is negative or NaN, or `norm` is negative.
void clip(const TensorList& tensors, double norm, double max_norm);

/// One optimizer step from gradients that are ready to be applied: no accumulation, no check, no model copy.
/// All lists float32, of the same shape, none sharing memory with another; `step` counts from 1.
struct AdamLists {
  const TensorList& param;
  const ConstTensorList& grad;
  const TensorList& exp_avg;
  const TensorList& exp_avg_sq;
  const TensorList* max_exp_avg_sq = nullptr;  ///< with amsgrad
};
void adamw_step(const AdamLists& lists, const AdamWOptions& options, std::int64_t step);
void adam_step(const AdamLists& lists, const AdamOptions& options, std::int64_t step);

struct SgdLists {
  const TensorList& param;
  const ConstTensorList& grad;
  const TensorList* momentum_buffer = nullptr;  ///< with momentum
};
void sgd_step(const SgdLists& lists, const SgdOptions& options, std::int64_t step);

}  // namespace gradfuse
