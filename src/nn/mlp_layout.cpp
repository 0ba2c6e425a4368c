#include "src/nn/mlp_layout.hpp"

#include "src/nn/normal_draw.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace gradfuse::nn {

MlpLayout make_layout(const MlpOptions& options) {
  MlpLayout layout;
  const auto add = [&layout](std::string name, std::vector<std::size_t> shape) {
    return layout.segment(layout.add(std::move(name), std::move(shape)));
  };
  const std::size_t num_layers = options.widths.size() - 1;
  for (std::size_t i = 0; i < num_layers; ++i) {
    LayerLayout layer{.inputs = options.widths[i], .outputs = options.widths[i + 1]};
    layer.weight = add(fmt::format("layer{}.weight", i), {layer.outputs, layer.inputs});
    layer.bias = add(fmt::format("layer{}.bias", i), {layer.outputs});
    if (options.norm != Norm::kNone && i + 1 < num_layers) {
      layer.norm_weight = add(fmt::format("layer{}.norm.weight", i), {layer.outputs});
      layer.norm_bias = add(fmt::format("layer{}.norm.bias", i), {layer.outputs});
    }
    layout.layers.push_back(layer);
  }
  return layout;
}

std::vector<float> initial_parameters(const MlpLayout& layout, std::uint64_t seed) {
  std::vector<float> flat(layout.numel, 0.0f);
  NormalDraw normal(seed);
  for (const LayerLayout& layer : layout.layers) {
    const double deviation = std::sqrt(2.0 / static_cast<double>(layer.inputs));
    for (float& weight : layer.weight.of(std::span(flat))) weight = static_cast<float>(deviation * normal());
    std::ranges::fill(layer.norm_weight.of(std::span(flat)), 1.0f);
  }
  return flat;
}

}  // namespace gradfuse::nn
