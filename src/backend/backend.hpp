#pragma once
// The passes that every backend provides. Above this line nobody knows dtypes or processors; below it nobody knows
// windows. Tables that a pass reads are spans of host memory; what they point to is memory of the backend's device.
#include <gradfuse/backend.hpp>
#include <gradfuse/optimizer.hpp>
#include <gradfuse/tensor_view.hpp>
#include <gradfuse/window.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/element/scalar.hpp"
#include "src/backend/buffer.hpp"
#include "src/backend/work_table.hpp"

namespace gradfuse {

inline constexpr std::uint32_t kNoIndex = UINT32_MAX;  // no micro-batch, no tensor

/// The accumulator, by tensor.
struct AccumulatorTable {
  DType dtype;
  std::span<void* const> data;
  std::span<const std::uint8_t> is_written;  // holds something of this window; else its content is garbage
};

struct AddPass {
  const WorkTable& table;
  std::size_t first_tensor, end_tensor;    // only these may have gradients
  std::span<const ConstTensorView> grads;  // by tensor; where absent, the tensor is not touched
  AccumulatorTable acc;
  float weight;
  std::uint32_t micro_batch;
  std::span<std::uint32_t> first_nonfinite;  // by tensor: where its accumulator ceased to be finite, or kNoIndex
};

/// The value of each tensor at the end of a window: what was accumulated, what is pending, both, or nothing.
struct Values {
  const WorkTable& table;
  AccumulatorTable acc;
  std::span<const ConstTensorView> pending;  // by tensor, or empty
  float weight;                              // of what is pending

  bool has_pending(std::size_t tensor) const { return !pending.empty() && !pending[tensor].is_absent(); }
  bool is_absent(std::size_t tensor) const { return acc.is_written[tensor] == 0 && !has_pending(tensor); }
};

struct StatsPass {
  Values values;
  std::span<double> chunk_sums;   // scratch, by chunk
  std::span<double> tensor_sums;  // result, by tensor: the sum of squares; 0 where the value is absent
};

/// What one step needs beside the tensors.
struct ControlBlock {
  StepOutcome outcome;
  double norm;
  double clip_coef;
  double grad_scale;
  std::uint32_t nonfinite_micro_batch, nonfinite_tensor;  // or kNoIndex
};
struct ControlPass {
  Values values;
  std::span<const double> tensor_sums;
  std::span<const std::uint32_t> first_nonfinite;  // by tensor
  std::uint32_t last_micro_batch;
  double loss_scale, total_count, max_norm;
  std::span<std::int64_t> step_counts;  // by tensor; advanced where there is a value, if the step is to be applied
  ControlBlock& control;                // result
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
  std::span<const std::uint32_t> group_of;  // by tensor
  std::span<const HyperParameters> groups;
  std::span<const std::int64_t> step_counts;  // by tensor, this step included
  const ControlBlock& control;                // a step that is to be skipped changes nothing
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
  virtual Buffer allocate(std::size_t num_bytes) const = 0;

  virtual void add(const AddPass&) const = 0;
  virtual void stats(const StatsPass&) const = 0;
  virtual void control(const ControlPass&) const = 0;
  virtual void adam(const AdamPass&) const = 0;
  virtual void sgd(const SgdPass&) const = 0;

  virtual void zero(const WorkTable&, std::span<const TensorView> out) const = 0;
  virtual bool scale(const WorkTable&, float factor, std::span<const ConstTensorView> in,
                     std::span<const TensorView> out) const = 0;
  virtual void axpby(const WorkTable&, float a, std::span<const ConstTensorView> x, float b,
                     std::span<const ConstTensorView> y, std::span<const TensorView> out) const = 0;
  virtual double max_magnitude(const WorkTable&, std::span<const ConstTensorView> x) const = 0;
};

}  // namespace gradfuse
