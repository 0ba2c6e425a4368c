#pragma once
// The launchers of the kernels: each makes one launch on a stream and returns its error. All pointers are to device
// memory; nothing is allocated, nothing waits. The bits are those of the CPU backend.
#include <cuda_runtime_api.h>

#include "kernels/cuda/tables.hpp"

namespace gradfuse::cuda {

/// Where to launch, and how wide.
struct Target {
  cudaStream_t stream;
  int num_sms;
};

struct AddArgs {
  WorkList work;
  std::uint64_t first_chunk, end_chunk;  // only these
  const AddEntry* entries;
  bool acc_is_float64;
  float weight;
  std::uint32_t micro_batch;
  std::uint32_t* first_nonfinite;  // by tensor: 1 + the first micro-batch whose accumulator is not finite; 0: none
};
cudaError_t add(const Target& target, const AddArgs& args);

struct ValueArgs {
  WorkList work;
  const ValueEntry* values;
  bool acc_is_float64;
  float weight;
};
struct SumsArgs {
  double* by_chunk;
  double* by_tensor;
};
/// Sums of squares of every chunk; of every tensor of at most one chunk too.
cudaError_t stats(const Target& target, const ValueArgs& values, const SumsArgs& sums);
/// Sums of the tensors of several chunks. Alone only where a norm is asked for; a step does it in its control kernel.
/// `scratch`: `fold_scratch_size(work)` values.
cudaError_t fold_sums(const Target& target, const WorkList& work, const SumsArgs& sums, double* scratch);
std::size_t fold_scratch_size(const WorkList& work);

struct ControlArgs {
  SumsArgs sums;
  double* scratch;                 // `fold_scratch_size` values
  std::uint32_t* first_nonfinite;  // cleared
  std::uint32_t last_micro_batch;
  double total_count, max_norm;
  LossScale* loss_scale;  // null: none
  bool loss_scale_is_dynamic;
  element::LossScaleRule loss_scale_rule;
  std::int64_t* step_counts;       // by tensor; advanced where there is a value, if the step is to be applied
  element::ControlBlock* control;  // result
};

struct AdamArgs {
  ValueArgs values;
  const AdamEntry* entries;
  const element::AdamHyperParameters* groups;
  element::AdamCoefs<float>* coefs;  // by tensor: written by the control kernel, read by the step kernel
};
struct SgdArgs {
  ValueArgs values;
  const SgdEntry* entries;
  const element::SgdHyperParameters* groups;
  element::SgdCoefs<float>* coefs;
  std::uint32_t* is_first_step;  // by tensor, as `coefs`: the momentum buffer holds nothing yet
};
/// One launch: sums folded, verdict, step counts, loss scale, the coefficients of every tensor.
cudaError_t control(const Target& target, const AdamArgs& step, const ControlArgs& args);
cudaError_t control(const Target& target, const SgdArgs& step, const ControlArgs& args);
/// The coefficients alone: for gradients that are ready to be applied as step `count` of every tensor.
cudaError_t prepare(const Target& target, const AdamArgs& step, std::int64_t count);
cudaError_t prepare(const Target& target, const SgdArgs& step, std::int64_t count);
/// The update and the model copy. `verdict` null: it is to be applied; else the kernel obeys it.
cudaError_t adam(const Target& target, const AdamArgs& args, const element::ControlBlock* verdict);
cudaError_t sgd(const Target& target, const SgdArgs& args, const element::ControlBlock* verdict);

// The single-purpose passes.
cudaError_t zero(const Target& target, const WorkList& work, const OutEntry* out);
/// *found_nonfinite |= any stored value is not finite. `out` is never float64.
cudaError_t scale(const Target& target, const WorkList& work, float factor, const InEntry* in, const OutEntry* out,
                  std::uint32_t* found_nonfinite);
/// y and out are float32.
cudaError_t axpby(const Target& target, const WorkList& work, float a, const InEntry* x, float b, const InEntry* y,
                  const OutEntry* out);
/// *bits = max(*bits, FP32 bits of the largest magnitude); those of a NaN are above those of infinity.
cudaError_t max_magnitude(const Target& target, const WorkList& work, const InEntry* x, std::uint32_t* bits);

}  // namespace gradfuse::cuda
