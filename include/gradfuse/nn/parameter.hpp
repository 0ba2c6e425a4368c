#pragma once
// What a model is made of.
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace gradfuse::nn {

/// One parameter tensor, owned by its model. All views stay where they are until the model is destroyed, also if it
/// moves.
struct Parameter {
  std::string name;                ///< such as "layer0.weight"
  std::vector<std::size_t> shape;  ///< [outputs, inputs] of a linear weight
  TensorView param;                ///< float32 master; the optimizer updates it
  TensorView model;                ///< 16-bit copy that forward and backward read; absent when the precision is float32
  ConstTensorView grad;            ///< in the precision's dtype; of the last `backward`, 0 before the first
};

/// A tensor that is no parameter but belongs to the trained model: "layer0.norm.running_mean", float32.
struct NamedBuffer {
  std::string name;
  TensorView buffer;
};

}  // namespace gradfuse::nn
