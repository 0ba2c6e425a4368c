#include "src/nn/half_panels.hpp"

#include <fmt/core.h>
#include <gradfuse/error.hpp>
#include <gradfuse/passes.hpp>

namespace gradfuse::nn {
namespace {

void check_half(DType dtype) {
  if (element_size(dtype) == 2) return;
  throw Error(fmt::format("half panel: got {}; expected float16 or bfloat16", dtype_name(dtype)));
}

}  // namespace

void widen(ConstTensorView from, std::span<float> to) {
  check_half(from.dtype);
  cast(ConstTensorList({from}), TensorList({view_of(to)}));
}

void narrow(std::span<const float> from, TensorView to) {
  check_half(to.dtype);
  cast(ConstTensorList({view_of(from)}), TensorList({to}));
}

}  // namespace gradfuse::nn
