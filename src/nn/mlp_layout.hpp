#pragma once
// The one list of an MLP's parameters: names, shapes, and where each lies in a flat buffer.
#include <gradfuse/nn/mlp.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradfuse::nn {

/// A tensor's place in a flat buffer, in elements.
struct Segment {
  std::size_t offset = 0;
  std::size_t numel = 0;

  template <class T>
  std::span<T> of(std::span<T> flat) const {
    return flat.subspan(offset, numel);
  }
};

/// The norm's segments are empty where there is no norm: at the last layer, or in the whole model.
struct LayerLayout {
  std::size_t inputs = 0;
  std::size_t outputs = 0;
  Segment weight{}, bias{}, norm_weight{}, norm_bias{};
};

struct NamedSegment {
  std::string name;
  std::vector<std::size_t> shape;
  Segment segment;
};

struct MlpLayout {
  std::vector<LayerLayout> layers;
  std::vector<NamedSegment> parameters;
  std::size_t numel = 0;  // of the flat buffer; what lies between the segments belongs to nobody
};

/// `options` have been checked.
MlpLayout make_layout(const MlpOptions& options);

/// Flat [layout.numel]: weights normal with variance 2/inputs, norm weights 1, everything else 0.
std::vector<float> initial_parameters(const MlpLayout& layout, std::uint64_t seed);

}  // namespace gradfuse::nn
