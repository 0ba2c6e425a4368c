#pragma once
// Which small tensors lie next to each other in memory, so that a pass can take them in one go. Found when a table
// changes, not in every pass.
#include <gradfuse/tensor_view.hpp>

#include <cstddef>

namespace gradfuse {

/// Whether `next` begins where the `numel` elements at `data` end. Two missing arrays follow each other too.
template <class T>
bool is_joined(const T* data, std::size_t numel, const T* next) {
  return data == nullptr || next == nullptr ? data == next : data + numel == next;
}
inline bool is_joined(const ConstTensorView& view, const ConstTensorView& next) {
  const auto *data = static_cast<const std::byte*>(view.data), *next_data = static_cast<const std::byte*>(next.data);
  return view.dtype == next.dtype && is_joined(data, view.num_bytes(), next_data);
}

}  // namespace gradfuse
