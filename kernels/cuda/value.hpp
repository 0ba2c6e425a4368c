#pragma once
// The value of a tensor at the end of a window: accumulated, pending, or both.
#include "kernels/cuda/row_access.hpp"
#include "kernels/cuda/tables.hpp"

namespace gradfuse::cuda {

/// `Acc` is the accumulator's type and the one that values are formed in.
template <class Acc>
struct Value {
  const Acc* acc;  // at the chunk's first element, as `pending`; null: nothing accumulated
  const void* pending;
  DType pending_dtype;
  Acc weight;

  __device__ bool is_absent() const { return acc == nullptr && pending == nullptr; }
};

__device__ inline const void* element_at(const void* data, DType dtype, std::int64_t element) {
  const void* at = nullptr;
  with_type(dtype, [&](auto type) { at = static_cast<const decltype(type)*>(data) + element; });
  return at;
}

template <class Acc>
__device__ inline Value<Acc> value_of(const ValueEntry* entry, float weight, std::int64_t begin) {
  const Acc* acc = static_cast<const Acc*>(load(&entry->acc));
  const void* pending = load(&entry->pending);
  const DType dtype = load(&entry->pending_dtype);
  return {acc == nullptr ? nullptr : acc + begin, pending == nullptr ? nullptr : element_at(pending, dtype, begin),
          dtype, static_cast<Acc>(weight)};
}

/// Where rows may begin: at a boundary of the pending gradient, whose vectors hold the most elements.
template <class Acc>
__device__ inline int head_of(const Value<Acc>& value) {
  int head = value.acc == nullptr ? 0 : head_of(value.acc);
  if (value.pending != nullptr) {
    with_type(value.pending_dtype,
              [&](auto type) { head = head_of(static_cast<const decltype(type)*>(value.pending)); });
  }
  return head;
}
template <class Acc>
__device__ inline bool is_aligned_at(const Value<Acc>& value, int head) {
  bool is_aligned = value.acc == nullptr || is_vector(value.acc + head);
  if (value.pending != nullptr)
    is_aligned = is_aligned && is_vector(element_at(value.pending, value.pending_dtype, head));
  return is_aligned;
}

/// The thread's values in a row, 0 outside it; rounded once to FP32 if they were formed in FP64.
template <class Acc, class Kind>
__device__ inline Values8<float> load_values(const Value<Acc>& value, const Row& row, const Place& place, Kind kind) {
  Raw<Acc> acc{};
  if (value.acc != nullptr) acc = load_raw<Hint::kStreaming>(value.acc + row.begin, row, place, kind);
  if (value.pending == nullptr) return widen<float>(acc, place);
  Values8<float> out;
  with_type(value.pending_dtype, [&](auto type) {
    const auto* pending = static_cast<const decltype(type)*>(value.pending);
    const Values8<Acc> grad = widen<Acc>(load_raw<Hint::kStreaming>(pending + row.begin, row, place, kind), place);
    const Values8<Acc> before = widen<Acc>(acc, place);
    GF_UNROLL
    for (int s = 0; s < kSlots; ++s) {
      // The product alone where nothing was accumulated: adding +0 would turn a -0 around.
      out.slot[s] = static_cast<float>(value.acc == nullptr
                                           ? element::accumulate_first(value.weight, grad.slot[s])
                                           : element::accumulate_later(value.weight, grad.slot[s], before.slot[s]));
    }
  });
  return out;
}

}  // namespace gradfuse::cuda
