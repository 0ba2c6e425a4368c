#pragma once
// Between 16-bit tensors and the float32 panels that the arithmetic works on.
#include <gradfuse/tensor_view.hpp>

#include <span>

namespace gradfuse::nn {

/// Exact. `from` is float16 or bfloat16 in host memory.
/// @throws Error  before anything is written: another dtype or device, or another number of elements.
void widen(ConstTensorView from, std::span<float> to);

/// Rounds to nearest even; overflow becomes inf, NaN stays NaN. `to` is float16 or bfloat16 in host memory.
/// @throws Error  as `widen`.
void narrow(std::span<const float> from, TensorView to);

}  // namespace gradfuse::nn
