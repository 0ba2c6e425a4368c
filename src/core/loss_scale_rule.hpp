#pragma once
// A loss scaler's options as the control pass takes them.
#include <gradfuse/loss_scaler.hpp>

#include "kernels/element/scalar.hpp"

namespace gradfuse {

element::LossScaleRule loss_scale_rule(const LossScalerOptions& options);

}  // namespace gradfuse
