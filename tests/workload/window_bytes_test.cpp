#include "src/workload/window_bytes.hpp"

#include <gtest/gtest.h>

namespace gradfuse::workload {
namespace {

TEST(WindowBytes, AreThoseOfTheDesignPage) {
  const WindowTraffic window{.micro_batches = 4, .grad_dtype = DType::kFloat16, .has_model_copy = true};
  EXPECT_EQ(window.fused_bytes(), 64u);
  EXPECT_EQ(window.unfused_bytes(), 98u);
}

TEST(WindowBytes, AWindowOfOneNeverTouchesTheAccumulator) {
  const WindowTraffic window{.micro_batches = 1, .grad_dtype = DType::kBFloat16, .has_model_copy = true};
  EXPECT_EQ(window.fused_bytes(), 2u + 28u);
  EXPECT_EQ(window.unfused_bytes(), 4u + 10u + 8u + 4u + 8u + 28u + 6u);
}

TEST(WindowBytes, AWindowOfTwoHasNoMiddle) {
  const WindowTraffic window{.micro_batches = 2, .grad_dtype = DType::kFloat16, .has_model_copy = true};
  EXPECT_EQ(window.fused_bytes(), 6u + 6u + 32u);
}

TEST(WindowBytes, EachMiddleMicroBatchCostsAnAdd) {
  WindowTraffic window{.micro_batches = 4, .grad_dtype = DType::kFloat16, .has_model_copy = true};
  const std::size_t fused = window.fused_bytes(), unfused = window.unfused_bytes();
  window.micro_batches = 16;
  EXPECT_EQ(window.fused_bytes(), fused + std::size_t{12} * 10);
  EXPECT_EQ(window.unfused_bytes(), unfused + std::size_t{12} * 10);
}

TEST(WindowBytes, Float32GradientsWithoutModelCopy) {
  const WindowTraffic window{.micro_batches = 4, .grad_dtype = DType::kFloat32, .has_model_copy = false};
  EXPECT_EQ(window.fused_bytes(), 8u + 2u * 12u + 8u + (8u + 24u));
  EXPECT_EQ(window.unfused_bytes(), 4u + 4u * 12u + 8u + 4u + 8u + 28u);
}

}  // namespace
}  // namespace gradfuse::workload
