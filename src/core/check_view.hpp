#pragma once
// What must be true of a view before its memory is touched.
#include <gradfuse/backend.hpp>
#include <gradfuse/tensor_view.hpp>

#include <string>
#include <string_view>

namespace gradfuse {

/// "3 (layer1.bias)": how messages name a tensor.
std::string tensor_label(std::size_t tensor, std::string_view name);

/// @throws Error  the dtype is no `DType`, the device is not the backend's, the pointer is null, not aligned to its
///                element or to memory that the device cannot reach, or the size does not fit into memory. `what`
///                begins the message: "gradient of tensor 3 (layer1.bias)".
void check_view(const ConstTensorView& view, const Backend& backend, std::string_view what);

/// Whether two views share a byte.
bool overlap(const ConstTensorView& a, const ConstTensorView& b);

}  // namespace gradfuse
