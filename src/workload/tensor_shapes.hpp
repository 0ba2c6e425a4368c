#pragma once
// Names and shapes of the parameter sets that benchmarks run on.
#include <cstddef>
#include <string>
#include <vector>

namespace gradfuse::workload {

struct TensorShape {
  std::string name;
  std::vector<std::size_t> shape;

  std::size_t numel() const;
};
using TensorShapes = std::vector<TensorShape>;

std::size_t numel_of(const TensorShapes& tensors);

TensorShapes one_tensor(std::size_t numel);
TensorShapes many_tensors(std::size_t num_tensors, std::size_t numel_each);

/// The 148 tensors of GPT-2 (Radford et al. 2019) with 12 blocks, `width` wide; vocabulary and context shrink with the
/// width, so that the proportions stay those of the original. Width 768 is the original: 124,439,808 parameters.
TensorShapes gpt2_tensors(std::size_t width);
/// The width, at least 1, with which the list has about `numel` parameters.
std::size_t gpt2_width_near(std::size_t numel);

}  // namespace gradfuse::workload
