#pragma once
// The Transformer in double, whose gradients finite differences check and float is compared with; and made-up tokens.
#include <cstdint>
#include <random>
#include <vector>

#include "src/nn/transformer_net.hpp"
#include "tests/nn/support.hpp"

namespace gradfuse::nn {

inline TransformerOptions small(bool is_tied = true) {
  return {.vocabulary = 11, .context = 7, .width = 12, .layers = 3, .heads = 3, .is_tied = is_tied, .seed = 2};
}

struct Tokens {
  std::vector<std::int32_t> inputs, targets;
  std::size_t positions;
  TokenBatch batch() const { return {inputs, targets, positions}; }
};
/// Some targets are ignored.
inline Tokens random_tokens(const TransformerOptions& options, std::size_t sequences, std::size_t positions,
                            std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Tokens tokens{{}, {}, positions};
  for (std::size_t i = 0; i < sequences * positions; ++i) {
    tokens.inputs.push_back(static_cast<std::int32_t>(random() % options.vocabulary));
    const bool is_ignored = random() % 5 == 0;
    tokens.targets.push_back(is_ignored ? kIgnoredTarget : static_cast<std::int32_t>(random() % options.vocabulary));
  }
  return tokens;
}

/// The net in double; its parameters stay exact in float, and none is 0 or 1.
struct DoubleTransformer {
  explicit DoubleTransformer(const TransformerOptions& from)
      : options(from), layout(make_layout(from)), net(from, layout) {
    const std::vector<float> initial = initial_parameters(options, layout);
    NormalDraw normal(3);
    for (const float value : initial) params.push_back(static_cast<float>(value + 0.3 * normal()));
    grads.resize(layout.numel);
  }
  double backward(const Tokens& tokens) {
    FlatTargets<double> targets(layout, grads.data());
    net.backward(tokens.batch(), params.data(), 1.0, targets);
    return net.take_loss_sum();
  }

  TransformerOptions options;
  TransformerLayout layout;
  TransformerNet<double> net;
  std::vector<double> params, grads;
};

}  // namespace gradfuse::nn
