#pragma once
// What an MLP refuses, before anything changes.
#include <gradfuse/nn/mlp.hpp>

#include <cstdint>
#include <span>

#include "src/nn/norm.hpp"

namespace gradfuse::nn {

/// @throws Error  naming the option that is out of its range.
void check_options(const MlpOptions& options);

/// @throws Error  naming the row that does not fit the model.
void check_batch(const MlpOptions& options, Mode mode, std::span<const float> features,
                 std::span<const std::int32_t> labels);

/// @throws Error  not a positive finite number.
void check_loss_scale(float loss_scale);

}  // namespace gradfuse::nn
