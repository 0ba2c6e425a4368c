#pragma once
// The parameters of an MLP, layer by layer.
#include <gradfuse/nn/mlp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/nn/parameter_layout.hpp"

namespace gradfuse::nn {

/// The norm's segments are empty where there is no norm: at the last layer, or in the whole model.
struct LayerLayout {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  Segment weight{}, bias{}, norm_weight{}, norm_bias{};
};

struct MlpLayout : ParameterLayout {
  std::vector<LayerLayout> layers;
};

/// `options` have been checked.
MlpLayout make_layout(const MlpOptions& options);

/// Flat [layout.numel]: weights normal with variance 2/inputs, norm weights 1, everything else 0.
std::vector<float> initial_parameters(const MlpLayout& layout, std::uint64_t seed);

}  // namespace gradfuse::nn
