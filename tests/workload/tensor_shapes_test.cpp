#include "src/workload/tensor_shapes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace gradfuse::workload {
namespace {

TEST(TensorShapes, Gpt2IsTheOriginalAtItsWidth) {
  const TensorShapes tensors = gpt2_tensors(768);
  EXPECT_EQ(tensors.size(), 148u);
  EXPECT_EQ(numel_of(tensors), 124'439'808u);
  EXPECT_EQ(tensors.front().name, "wte.weight");
  EXPECT_EQ(tensors.front().shape, (std::vector<std::size_t>{50257, 768}));
  EXPECT_EQ(gpt2_width_near(124'439'808), 768u);
}

TEST(TensorShapes, Gpt2ComesNearTheNumberThatWasAskedFor) {
  for (const std::size_t numel : {100'000u, 1'000'000u, 31'000'000u, 100'000'000u}) {
    const auto got = static_cast<double>(numel_of(gpt2_tensors(gpt2_width_near(numel))));
    EXPECT_LT(std::abs(got / static_cast<double>(numel) - 1.0), 0.1) << numel;
  }
  EXPECT_EQ(gpt2_width_near(1), 1u);
}

TEST(TensorShapes, NamesAreUnique) {
  for (const TensorShapes& tensors : {gpt2_tensors(8), many_tensors(100, 64)}) {
    std::set<std::string> names;
    for (const TensorShape& tensor : tensors) names.insert(tensor.name);
    EXPECT_EQ(names.size(), tensors.size());
  }
}

TEST(TensorShapes, ManyTensorsHoldWhatOneDoes) {
  EXPECT_EQ(numel_of(many_tensors(10'000, 64)), numel_of(one_tensor(640'000)));
  EXPECT_EQ(many_tensors(10'000, 64).size(), 10'000u);
}

}  // namespace
}  // namespace gradfuse::workload
