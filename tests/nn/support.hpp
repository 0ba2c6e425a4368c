#pragma once
// Made-up micro-batches, and parameters copied out of a model.
#include "src/nn/normal_draw.hpp"

#include <gradfuse/nn/mlp.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace gradfuse::nn {

struct RandomRows {
  std::vector<float> features;
  std::vector<std::int32_t> labels;
};

/// Normal features, and labels that go round the classes.
inline RandomRows random_rows(const MlpOptions& options, std::size_t rows, std::uint64_t seed) {
  RandomRows batch;
  NormalDraw normal(seed);
  for (std::size_t i = 0; i < rows * options.widths.front(); ++i) {
    batch.features.push_back(static_cast<float>(normal()));
  }
  for (std::size_t r = 0; r < rows; ++r) {
    batch.labels.push_back(static_cast<std::int32_t>((r * 7 + seed) % options.widths.back()));
  }
  return batch;
}

/// The elements of a tensor, as they lie in memory.
template <class T>
std::vector<T> elements(ConstTensorView view) {
  std::vector<T> copy(view.numel);
  if (!copy.empty()) std::memcpy(copy.data(), view.data, view.num_bytes());
  return copy;
}

inline std::string combination_name(Activation activation, Norm norm) {
  constexpr const char* kActivations[] = {"Relu", "Gelu"};
  constexpr const char* kNorms[] = {"NoNorm", "LayerNorm", "BatchNorm"};
  return std::string(kActivations[static_cast<std::size_t>(activation)]) + kNorms[static_cast<std::size_t>(norm)];
}

}  // namespace gradfuse::nn
