#pragma once
// Made-up micro-batches, and parameters copied out of a model.
#include "src/nn/normal_draw.hpp"

#include <gradfuse/nn/mlp.hpp>
#include <gradfuse/passes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
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

/// float32 values in a 16-bit format, to nearest even.
inline std::vector<std::uint16_t> rounded(std::span<const float> values, DType dtype) {
  std::vector<std::uint16_t> halves(values.size());
  cast(ConstTensorList({view_of(values)}), TensorList({TensorView{halves.data(), halves.size(), dtype}}));
  return halves;
}

/// One micro-batch; returns the mean loss of its rows.
inline double backward(Mlp& mlp, std::span<const float> features, std::span<const std::int32_t> labels,
                       float loss_scale = 1.0f) {
  mlp.backward(features, labels, loss_scale);
  return mlp.take_loss_sum() / static_cast<double>(labels.size());
}

inline std::string combination_name(Activation activation, Norm norm) {
  constexpr const char* kActivations[] = {"Relu", "Gelu"};
  constexpr const char* kNorms[] = {"NoNorm", "LayerNorm", "BatchNorm"};
  return std::string(kActivations[static_cast<std::size_t>(activation)]) + kNorms[static_cast<std::size_t>(norm)];
}

}  // namespace gradfuse::nn
