#include "src/nn/transformer_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/nn/normal_draw.hpp"

namespace gradfuse::nn {
namespace {

LinearParameters add_linear(TransformerLayout& layout, const std::string& name, std::size_t outputs,
                            std::size_t inputs) {
  return {layout.add(name + ".weight", {outputs, inputs}), layout.add(name + ".bias", {outputs})};
}
LinearParameters add_norm(TransformerLayout& layout, const std::string& name, std::size_t width) {
  return {layout.add(name + ".weight", {width}), layout.add(name + ".bias", {width})};
}

}  // namespace

TransformerLayout make_layout(const TransformerOptions& options) {
  const std::size_t width = options.width;
  TransformerLayout layout;
  layout.token_embedding = layout.add("token_embedding.weight", {options.vocabulary, width});
  layout.position_embedding = layout.add("position_embedding.weight", {options.context, width});
  for (std::size_t i = 0; i < options.layers; ++i) {
    const std::string block = fmt::format("block{}.", i);
    layout.blocks.push_back({.norm1 = add_norm(layout, block + "norm1", width),
                             .qkv = add_linear(layout, block + "attention.qkv", 3 * width, width),
                             .attention_out = add_linear(layout, block + "attention.out", width, width),
                             .norm2 = add_norm(layout, block + "norm2", width),
                             .up = add_linear(layout, block + "mlp.up", kMlpFactor * width, width),
                             .down = add_linear(layout, block + "mlp.down", width, kMlpFactor * width)});
  }
  layout.norm = add_norm(layout, "norm", width);
  layout.head = options.is_tied ? layout.token_embedding : layout.add("head.weight", {options.vocabulary, width});
  // The embeddings; a block; the last norm with the head, which is as large as the token embedding.
  const auto from = [&](std::size_t parameter) { return layout.segment(parameter).offset; };
  const std::size_t embeddings = from(layout.blocks[0].norm1.weight);
  const std::size_t end_of_block = layout.blocks.size() > 1 ? layout.blocks[1].norm1.weight : layout.norm.weight;
  const std::size_t block = from(end_of_block) - embeddings;
  const std::size_t norm = from(layout.blocks[0].qkv.weight) - embeddings;
  layout.largest_layer = std::max({embeddings, block, norm + from(layout.position_embedding)});
  return layout;
}

std::vector<float> initial_parameters(const TransformerOptions& options, const TransformerLayout& layout) {
  constexpr double kDeviation = 0.02;
  const double residual_deviation = kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  std::vector<float> flat(layout.numel, 0.0f);
  NormalDraw normal(options.seed);
  const auto draw = [&](std::size_t parameter, double deviation) {
    for (float& weight : layout.segment(parameter).of(std::span(flat))) {
      weight = static_cast<float>(deviation * normal());
    }
  };
  const auto ones = [&](const LinearParameters& norm) {
    std::ranges::fill(layout.segment(norm.weight).of(std::span(flat)), 1.0f);
  };
  draw(layout.token_embedding, kDeviation);
  draw(layout.position_embedding, kDeviation);
  for (const BlockParameters& block : layout.blocks) {
    ones(block.norm1);
    draw(block.qkv.weight, kDeviation);
    draw(block.attention_out.weight, residual_deviation);
    ones(block.norm2);
    draw(block.up.weight, kDeviation);
    draw(block.down.weight, residual_deviation);
  }
  ones(layout.norm);
  if (layout.head != layout.token_embedding) draw(layout.head, kDeviation);
  return flat;
}

TransformerActivations plan_activations(const TransformerOptions& options, std::size_t sequences,
                                        std::size_t positions) {
  const std::size_t rows = sequences * positions, stream = rows * options.width;
  TransformerActivations plan;
  plan.segment_length =
      options.checkpoint_every == 0 ? options.layers : std::min(options.checkpoint_every, options.layers);
  ArenaPlan& values = plan.values;
  for (std::size_t i = 0; i < options.layers; i += plan.segment_length)
    plan.segment_inputs.push_back(values.add(stream));
  for (std::size_t i = 0; i < plan.segment_length; ++i) {
    plan.blocks.push_back({.input = i == 0 ? 0 : values.add(stream),
                           .normed1 = values.add(stream),
                           .qkv = values.add(3 * stream),
                           .attended = values.add(stream),
                           .log_sums = values.add(rows * options.heads),
                           .middle = values.add(stream),
                           .normed2 = values.add(stream),
                           .up = values.add(kMlpFactor * stream),
                           .activated = values.add(kMlpFactor * stream),
                           .mean1 = plan.statistics.add(rows),
                           .reciprocal1 = plan.statistics.add(rows),
                           .mean2 = plan.statistics.add(rows),
                           .reciprocal2 = plan.statistics.add(rows)});
  }
  plan.output = values.add(stream);
  plan.normed = values.add(stream);
  plan.logits = values.add(rows * options.vocabulary);
  plan.mean = plan.statistics.add(rows);
  plan.reciprocal = plan.statistics.add(rows);
  plan.row_losses = plan.statistics.add(rows);
  plan.stream_grad = values.add(stream);
  plan.row_grad = values.add(stream);
  plan.qkv_grad = values.add(3 * stream);
  plan.up_grad = values.add(kMlpFactor * stream);
  return plan;
}

}  // namespace gradfuse::nn
