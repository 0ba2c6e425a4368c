#pragma once
// The MLP in double, whose gradients finite differences check and float is compared with.
#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "src/nn/mlp_net.hpp"
#include "tests/nn/support.hpp"

namespace gradfuse::nn {

inline constexpr std::size_t kRows = 9;

/// The net in double beside a random micro-batch; norm weights and biases are random too, so that nothing is 0 or 1.
struct DoubleNet {
  explicit DoubleNet(const MlpOptions& from) : options(from), layout(make_layout(from)), net(from, layout) {
    const RandomRows rows = random_rows(options, kRows, 5);
    features.assign(rows.features.begin(), rows.features.end());
    labels = rows.labels;
    const std::vector<float> initial = initial_parameters(layout, 11);
    params.assign(initial.begin(), initial.end());
    NormalDraw normal(3);
    for (double& param : params) param = static_cast<float>(param + 0.1 * normal());  // stays exact in float
    grads.resize(layout.numel);
  }

  double backward(double loss_scale = 1.0) {
    net.backward({features, labels}, params.data(), loss_scale, grads.data());
    return net.take_loss_sum() / static_cast<double>(labels.size());
  }

  MlpOptions options;
  MlpLayout layout;
  MlpNet<double> net;
  std::vector<double> features, params, grads;
  std::vector<std::int32_t> labels;
};

inline double largest(std::span<const double> values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace gradfuse::nn
