#pragma once
// What must be true of a gradient before it is read.
#include <gradfuse/parameter_set.hpp>

namespace gradfuse {

/// @throws Error  the view is not that of a gradient of this tensor (see `check_view`), has another size, or shares
/// memory
///                with a parameter or a model copy.
void check_gradient(const ParameterSet& params, std::size_t tensor, const ConstTensorView& grad);

}  // namespace gradfuse
