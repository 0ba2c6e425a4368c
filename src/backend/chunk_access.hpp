#pragma once
// Reaching a chunk of a tensor in host memory.
#include <cstddef>

#include "kernels/cpu/loops.hpp"
#include "src/backend/backend.hpp"

namespace gradfuse {

constexpr std::size_t index_of(DType dtype) { return static_cast<std::size_t>(dtype); }

inline const void* element_at(const void* data, DType dtype, std::int64_t element) {
  return static_cast<const std::byte*>(data) + element * static_cast<std::int64_t>(element_size(dtype));
}
inline void* element_at(void* data, DType dtype, std::int64_t element) {
  return static_cast<std::byte*>(data) + element * static_cast<std::int64_t>(element_size(dtype));
}
inline const void* chunk_of(const ConstTensorView& view, const Chunk& chunk) {
  return element_at(view.data, view.dtype, chunk.begin);
}
inline void* chunk_of(const TensorView& view, const Chunk& chunk) {
  return element_at(view.data, view.dtype, chunk.begin);
}

// Whether the memory of a chunk begins where that of the one before ends.
inline bool continues(const void* data, DType dtype, const Chunk& before, const void* next_data, const Chunk& next) {
  return element_at(data, dtype, before.begin + before.numel) == element_at(next_data, dtype, next.begin);
}
inline bool continues(const ConstTensorView& view, const Chunk& before, const ConstTensorView& next_view,
                      const Chunk& next) {
  if (view.data == nullptr || next_view.data == nullptr) return view.data == next_view.data;
  return view.dtype == next_view.dtype && continues(view.data, view.dtype, before, next_view.data, next);
}
inline bool continues(const float* data, const Chunk& before, const float* next_data, const Chunk& next) {
  if (data == nullptr || next_data == nullptr) return data == next_data;
  return continues(data, DType::kFloat32, before, next_data, next);
}
inline bool continues(const AccumulatorTable& acc, const Chunk& before, const Chunk& next) {
  return acc.is_written[before.tensor] == acc.is_written[next.tensor] &&
         continues(acc.data[before.tensor], acc.dtype, before, acc.data[next.tensor], next);
}
inline bool continues(const Values& values, const Chunk& before, const Chunk& next) {
  return continues(values.acc, before, next) &&
         (values.pending.empty() ||
          continues(values.pending[before.tensor], before, values.pending[next.tensor], next));
}
inline bool continues(const AdamTensor& tensor, const Chunk& before, const AdamTensor& next_tensor, const Chunk& next) {
  return continues(tensor.param, before, next_tensor.param, next) &&
         continues(tensor.exp_avg, before, next_tensor.exp_avg, next) &&
         continues(tensor.exp_avg_sq, before, next_tensor.exp_avg_sq, next) &&
         continues(tensor.max_exp_avg_sq, before, next_tensor.max_exp_avg_sq, next) &&
         continues(tensor.model, before, next_tensor.model, next);
}
inline bool continues(const SgdTensor& tensor, const Chunk& before, const SgdTensor& next_tensor, const Chunk& next) {
  return continues(tensor.param, before, next_tensor.param, next) &&
         continues(tensor.momentum_buffer, before, next_tensor.momentum_buffer, next) &&
         continues(tensor.model, before, next_tensor.model, next);
}

/// The values of a tensor from an element on, as the loops take them.
inline cpu::ValueRun value_at(const Values& values, std::size_t tensor, std::int64_t begin) {
  cpu::ValueRun run{nullptr, values.acc.dtype, nullptr, DType::kFloat32, values.weight};
  if (values.acc.is_written[tensor] != 0) run.acc = element_at(values.acc.data[tensor], values.acc.dtype, begin);
  if (values.has_pending(tensor)) {
    const ConstTensorView& pending = values.pending[tensor];
    run.grad = element_at(pending.data, pending.dtype, begin);
    run.grad_dtype = pending.dtype;
  }
  return run;
}

}  // namespace gradfuse
