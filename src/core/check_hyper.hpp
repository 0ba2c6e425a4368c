#pragma once
// Range checks of hyper-parameters; NaN is in no range.
#include <cstddef>
#include <string_view>

#include "kernels/element/scalar.hpp"

namespace gradfuse {

/// @throws Error  unless the value is finite in float32, at least `low`, and below `high` where that is given.
void check_hyper(std::size_t group, std::string_view name, double value, double low);
void check_hyper(std::size_t group, std::string_view name, double value, double low, double high);

/// The ranges of torch.optim; negative weight decay is allowed, as a caller may mean it.
void check_hyper(std::size_t group, const element::AdamHyperParameters& hyper);
void check_hyper(std::size_t group, const element::SgdHyperParameters& hyper);

}  // namespace gradfuse
