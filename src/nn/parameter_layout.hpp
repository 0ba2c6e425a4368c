#pragma once
// The one list of a model's parameters: names, shapes, and where each lies in a flat array.
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gradfuse::nn {

/// A tensor's place in a flat array, in elements.
struct Segment {
  std::size_t offset = 0;
  std::size_t numel = 0;

  template <class T>
  std::span<T> of(std::span<T> flat) const {
    return flat.subspan(offset, numel);
  }
};

struct NamedSegment {
  std::string name;
  std::vector<std::size_t> shape;
  Segment segment;
};

struct ParameterLayout {
  std::vector<NamedSegment> parameters;
  std::size_t numel = 0;  // of the flat array; what lies between the segments belongs to nobody

  /// Puts a tensor behind the others; returns its index.
  std::size_t add(std::string name, std::vector<std::size_t> shape);
  const Segment& segment(std::size_t index) const { return parameters[index].segment; }
};

}  // namespace gradfuse::nn
