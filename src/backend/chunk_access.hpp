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

/// Whether `tensor`, whose first chunk follows the last one of the tensor before, may be taken in one go with it.
inline bool is_joined(const AccumulatorTable& acc, std::size_t tensor) {
  return !acc.joins.empty() && acc.joins[tensor] != 0 && acc.is_written[tensor] == acc.is_written[tensor - 1];
}
inline bool is_joined(const Values& values, std::size_t tensor) {
  return is_joined(values.acc, tensor) &&
         (values.pending.empty() || (!values.pending_joins.empty() && values.pending_joins[tensor] != 0));
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
