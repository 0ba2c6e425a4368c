#include "src/workload/synthetic_model.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <gradfuse/passes.hpp>
#include <string>

namespace gradfuse::workload {
namespace {

class FilledArray : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryDType, FilledArray,
                         testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(FilledArray, HasTheMagnitudesThatWereAskedFor) {
  const FlatArray array(one_tensor(1000), GetParam(), *cpu_backend(), -3);
  const FlatArray as_float(one_tensor(1000), DType::kFloat32, *cpu_backend());
  cast(ConstTensorList({array.views()[0]}), TensorList(as_float.views()));
  const auto* values = static_cast<const float*>(as_float.views()[0].data);
  int negative = 0;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(std::abs(values[i]) >= 0.125f && std::abs(values[i]) <= 0.25f) << values[i];  // float64 may round up
    negative += values[i] < 0.0f;
  }
  EXPECT_NEAR(negative, 500, 80);
}

TEST(FlatArray, PutsEachTensorAtACacheLine) {
  const FlatArray array({{"a", {3}}, {"b", {5, 7}}, {"c", {64}}}, DType::kFloat16, *cpu_backend());
  ASSERT_EQ(array.views().size(), 3u);
  EXPECT_EQ(array.views()[1].numel, 35u);
  for (const TensorView& view : array.views()) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 64, 0u);
}

TEST(SyntheticModel, HasWhatItsOptionsSay) {
  const SyntheticModel plain(one_tensor(10), {.grad_dtype = DType::kFloat32});
  EXPECT_EQ(plain.params()[0].model.data, nullptr);
  const SyntheticModel half(gpt2_tensors(4), {.grad_dtype = DType::kBFloat16, .model_dtype = DType::kBFloat16});
  EXPECT_EQ(half.params().size(), 148u);
  EXPECT_EQ(half.grads().size(), 148u);
  EXPECT_EQ(half.params()[0].model.dtype, DType::kBFloat16);
  EXPECT_EQ(half.grads()[0].dtype, DType::kBFloat16);
}

TEST(SyntheticModel, TheModelCopyIsOfTheGradientsType) {
  EXPECT_EQ(usual_model_dtype(DType::kFloat16), DType::kFloat16);
  EXPECT_EQ(usual_model_dtype(DType::kBFloat16), DType::kBFloat16);
  EXPECT_EQ(usual_model_dtype(DType::kFloat32), std::nullopt);
}

}  // namespace
}  // namespace gradfuse::workload
