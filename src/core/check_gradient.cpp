#include "src/core/check_gradient.hpp"

#include <fmt/format.h>

#include <gradfuse/error.hpp>

#include "src/backend/backend.hpp"
#include "src/core/check_view.hpp"

namespace gradfuse {

void check_gradient(const ParameterSet& params, std::size_t tensor, const ConstTensorView& grad) {
  const Parameter& parameter = params[tensor];
  const std::string label = tensor_label(tensor, parameter.name);
  check_view(grad, *params.backend(), fmt::format("gradient of tensor {}", label));
  if (grad.numel != parameter.param.numel) {
    throw Error(fmt::format("gradient of tensor {} has {} elements, the parameter {}", label, grad.numel,
                            parameter.param.numel));
  }
  if (const auto other = params.overlapping(grad.data, grad.num_bytes())) {
    throw Error(fmt::format("gradient of tensor {} shares memory with parameter {}; give it a buffer of its own", label,
                            tensor_label(*other, params[*other].name)));
  }
}

}  // namespace gradfuse
