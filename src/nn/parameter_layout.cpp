#include "src/nn/parameter_layout.hpp"

#include <utility>

namespace gradfuse::nn {
namespace {

// Segments start on a cache line in float32, and on a 32-byte vector in 16 bits.
constexpr std::size_t kAlignedElements = 16;

}  // namespace

std::size_t ParameterLayout::add(std::string name, std::vector<std::size_t> shape) {
  std::size_t tensor_numel = 1;
  for (const std::size_t extent : shape) tensor_numel *= extent;
  const Segment segment{numel, tensor_numel};
  numel += (tensor_numel + kAlignedElements - 1) / kAlignedElements * kAlignedElements;
  parameters.push_back({std::move(name), std::move(shape), segment});
  return parameters.size() - 1;
}

}  // namespace gradfuse::nn
