#pragma once
// Text from a Transformer, token by token.
#include <gradfuse/nn/transformer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace gradfuse::nn {

struct SampleOptions {
  std::size_t tokens = 200;
  double temperature = 0.8;  ///< Divides the logits; 0: always the most probable token, of equals the first.
  std::size_t top_k = 0;     ///< Only so many of the most probable tokens; 0: all.
  std::uint64_t seed = 0;
};

/// Goes on from `prompt`, one token or more, of which the model sees the last `context`. Calls `on_token` with each.
/// @throws Error  the prompt is empty or has a token out of range, or the temperature is negative or not finite.
void sample(Transformer& model, const TransformerOptions& shape, std::vector<std::int32_t> prompt,
            const SampleOptions& options, const std::function<void(std::int32_t)>& on_token);

}  // namespace gradfuse::nn
