#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <gradfuse/error.hpp>
#include <gradfuse/nn/sample.hpp>
#include <numeric>
#include <random>
#include <span>

namespace gradfuse::nn {
namespace {

/// `uniform` in [0, 1) decides.
std::int32_t draw(std::span<const float> logits, const SampleOptions& options, double uniform) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (options.temperature == 0.0) return static_cast<std::int32_t>(order.front());
  if (options.top_k > 0 && options.top_k < order.size()) order.resize(options.top_k);
  std::vector<double> weights;
  for (const std::size_t token : order) {
    weights.push_back(std::exp((static_cast<double>(logits[token]) - logits[order.front()]) / options.temperature));
  }
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    left -= weights[i];
    if (left < 0.0) return static_cast<std::int32_t>(order[i]);
  }
  return static_cast<std::int32_t>(order.back());
}

}  // namespace

void sample(Transformer& model, const TransformerOptions& shape, std::vector<std::int32_t> prompt,
            const SampleOptions& options, const std::function<void(std::int32_t)>& on_token) {
  if (prompt.empty()) throw Error("the prompt is empty; give a token or more to go on from");
  if (!(options.temperature >= 0.0 && std::isfinite(options.temperature))) {
    throw Error(fmt::format("temperature is {}; it must be at least 0 and finite", options.temperature));
  }
  std::mt19937_64 random(options.seed);
  for (std::size_t i = 0; i < options.tokens; ++i) {
    const std::size_t seen = std::min(prompt.size(), shape.context);
    const std::vector<float> logits = model.next_logits(std::span(prompt).last(seen));
    prompt.push_back(draw(logits, options, static_cast<double>(random() >> 11) * 0x1p-53));
    on_token(prompt.back());
  }
}

}  // namespace gradfuse::nn
