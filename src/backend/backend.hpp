#pragma once
// The passes that every backend provides. Above this line nobody knows dtypes or processors; below it nobody knows
// windows. Spans are tables in host memory, which may change as soon as the pass was called; pointers, those in the
// tables too, are to memory of the backend's device. Passes are made one after the other, but the device may lag
// behind.
#include <gradfuse/backend.hpp>
#include <gradfuse/optimizer.hpp>
#include <gradfuse/tensor_view.hpp>
#include <gradfuse/window.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/element/scalar.hpp"
#include "src/backend/device_memory.hpp"
#include "src/backend/stopwatch.hpp"
#include "src/backend/work_table.hpp"

namespace gradfuse {

using element::ControlBlock;
using element::kNoIndex;

/// By tensor: not 0 if in each array of the table beside it the tensor's memory begins where that of the tensor before
/// ends. A backend may take such tensors in one go: a thousand small ones then cost hardly more than a large one.
/// Empty: that is known of none.
using Joins = std::span<const std::uint8_t>;

/// The accumulator, by tensor.
struct AccumulatorTable {
  DType dtype;
  std::span<void* const> data;
  Joins joins;
  std::span<const std::uint8_t> is_written;  // holds something of this window; else its content is garbage
};

struct AddPass {
  const WorkTable& table;
  std::size_t first_tensor, end_tensor;    // only these may have gradients
  std::span<const ConstTensorView> grads;  // by tensor; where absent, the tensor is not touched
  Joins grad_joins;
  AccumulatorTable acc;
  float weight;
  std::uint32_t micro_batch;
  // By tensor: 1 + the micro-batch in which its accumulator ceased to be finite; 0 while it is.
  std::uint32_t* first_nonfinite;
};

/// The value of each tensor at the end of a window: what was accumulated, what is pending, both, or nothing.
struct Values {
  const WorkTable& table;
  AccumulatorTable acc;
  std::span<const ConstTensorView> pending;  // by tensor, or empty
  Joins pending_joins;
  float weight;  // of what is pending

  bool has_pending(std::size_t tensor) const { return !pending.empty() && !pending[tensor].is_absent(); }
  bool is_absent(std::size_t tensor) const { return acc.is_written[tensor] == 0 && !has_pending(tensor); }
};

/// Sums of squares, 0 where the value is absent.
struct Sums {
  double* by_chunk;
  double* by_tensor;  // those of several chunks only when `fold_sums` or a step has gathered them
};
struct StatsPass {
  Values values;
  Sums sums;  // result
};

/// The verdict on a window, which its step forms before it touches a tensor.
struct ControlPass {
  Sums sums;
  std::uint32_t* first_nonfinite;            // by tensor, as for the add; cleared for the next window
  std::span<const std::uint8_t> is_claimed;  // by tensor: a producer wrote the accumulator, unseen by any add
  std::uint32_t last_micro_batch;
  double total_count, max_norm;
  LossScale* loss_scale;                          // null: the gradients carry none
  const element::LossScaleRule* loss_scale_rule;  // null: it does not change
  std::int64_t* step_counts;  // by tensor; advanced where there is a value, if the step is to be applied
  ControlBlock* control;      // result; a step that is to be skipped changes nothing else
};

/// The tensors of a step; the model copy may be absent.
struct AdamTensor {
  float* param;
  float* exp_avg;
  float* exp_avg_sq;
  float* max_exp_avg_sq;  // null without amsgrad
  TensorView model;
};
struct SgdTensor {
  float* param;
  float* momentum_buffer;  // null without momentum
  TensorView model;
};
template <class Tensor, class HyperParameters>
struct StepPass {
  Values values;
  std::span<const Tensor> tensors;
  Joins joins;                              // of the tensors and their groups
  std::span<const std::uint32_t> group_of;  // by tensor
  const HyperParameters* groups;
  const ControlPass* control;  // null: the values are ready to be applied, unseen
  std::int64_t step;           // of every tensor, where there is no control pass to count
};
using AdamPass = StepPass<AdamTensor, element::AdamHyperParameters>;
using SgdPass = StepPass<SgdTensor, element::SgdHyperParameters>;

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  virtual BackendInfo info() const = 0;
  virtual Device device() const = 0;
  virtual const DeviceMemory& memory() const = 0;
  virtual std::unique_ptr<WorkTable> make_work_table(std::span<const std::size_t> numels) const = 0;
  virtual std::unique_ptr<Stopwatch> make_stopwatch() const = 0;

  virtual void add(const AddPass&) const = 0;
  virtual void stats(const StatsPass&) const = 0;
  virtual void fold_sums(const WorkTable&, const Sums&) const = 0;
  virtual void adam(const AdamPass&) const = 0;
  virtual void sgd(const SgdPass&) const = 0;

  virtual void zero(const WorkTable&, std::span<const TensorView> out) const = 0;
  /// Raises `found_nonfinite`, if it is not null; that waits for the device.
  virtual void scale(const WorkTable&, float factor, std::span<const ConstTensorView> in,
                     std::span<const TensorView> out, bool* found_nonfinite) const = 0;
  virtual void axpby(const WorkTable&, float a, std::span<const ConstTensorView> x, float b,
                     std::span<const ConstTensorView> y, std::span<const TensorView> out) const = 0;
  virtual double max_magnitude(const WorkTable&, std::span<const ConstTensorView> x) const = 0;
};

}  // namespace gradfuse
