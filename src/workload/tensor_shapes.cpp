#include "src/workload/tensor_shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace gradfuse::workload {
namespace {

constexpr std::size_t kWidth = 768, kBlocks = 12, kVocabulary = 50257, kContext = 1024;

/// `count` of the original model, at another width.
std::size_t scaled(std::size_t count, std::size_t width) {
  return std::max<std::size_t>(1, (count * width + kWidth / 2) / kWidth);
}

void append_block(TensorShapes& tensors, std::size_t block, std::size_t width) {
  const auto add = [&](const char* name, std::vector<std::size_t> shape) {
    tensors.push_back({fmt::format("h.{}.{}", block, name), std::move(shape)});
  };
  add("ln_1.weight", {width});
  add("ln_1.bias", {width});
  add("attn.c_attn.weight", {width, 3 * width});
  add("attn.c_attn.bias", {3 * width});
  add("attn.c_proj.weight", {width, width});
  add("attn.c_proj.bias", {width});
  add("ln_2.weight", {width});
  add("ln_2.bias", {width});
  add("mlp.c_fc.weight", {width, 4 * width});
  add("mlp.c_fc.bias", {4 * width});
  add("mlp.c_proj.weight", {4 * width, width});
  add("mlp.c_proj.bias", {width});
}

}  // namespace

std::size_t TensorShape::numel() const {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

std::size_t numel_of(const TensorShapes& tensors) {
  std::size_t numel = 0;
  for (const TensorShape& tensor : tensors) numel += tensor.numel();
  return numel;
}

TensorShapes one_tensor(std::size_t numel) { return {{"tensor", {numel}}}; }

TensorShapes many_tensors(std::size_t num_tensors, std::size_t numel_each) {
  TensorShapes tensors;
  for (std::size_t t = 0; t < num_tensors; ++t) tensors.push_back({fmt::format("tensor.{}", t), {numel_each}});
  return tensors;
}

TensorShapes gpt2_tensors(std::size_t width) {
  TensorShapes tensors{{"wte.weight", {scaled(kVocabulary, width), width}},
                       {"wpe.weight", {scaled(kContext, width), width}}};
  for (std::size_t block = 0; block < kBlocks; ++block) append_block(tensors, block, width);
  tensors.push_back({"ln_f.weight", {width}});
  tensors.push_back({"ln_f.bias", {width}});
  return tensors;
}

std::size_t gpt2_width_near(std::size_t numel) {
  std::size_t low = 1, high = 1;
  while (numel_of(gpt2_tensors(high)) < numel) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (numel_of(gpt2_tensors(middle)) < numel ? low : high) = middle;
  }
  return high;
}

}  // namespace gradfuse::workload
