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

/// The values from an element on, as the loops take them.
inline cpu::ValueRun value_at(const ValueSlot& slot, DType accumulator, std::int64_t begin) {
  const ConstTensorView& pending = slot.pending;
  return {.acc = slot.acc == nullptr ? nullptr : element_at(slot.acc, accumulator, begin),
          .acc_dtype = accumulator,
          .grad = pending.is_absent() ? nullptr : element_at(pending.data, pending.dtype, begin),
          .grad_dtype = slot.pending.dtype,
          .weight = slot.weight};
}

}  // namespace gradfuse
