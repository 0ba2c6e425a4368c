#include "src/workload/windows.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace gradfuse::workload {
namespace {

std::vector<float> parameters_of(const SyntheticModel& model) {
  std::vector<float> values;
  for (const Parameter& parameter : model.params().parameters()) {
    const auto* data = static_cast<const float*>(parameter.param.data);
    values.insert(values.end(), data, data + parameter.param.numel);
  }
  return values;
}

struct Case {
  DType grad_dtype;
  std::size_t micro_batches;
};

class WindowsOn : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, WindowsOn,
                         testing::Values(Case{DType::kFloat16, 1}, Case{DType::kFloat16, 4}, Case{DType::kFloat16, 16},
                                         Case{DType::kBFloat16, 4}, Case{DType::kFloat32, 2}),
                         [](const auto& info) {
                           return fmt::format("{}_{}_micro_batches", dtype_name(info.param.grad_dtype),
                                              info.param.micro_batches);
                         });

TEST_P(WindowsOn, FusedAndUnfusedDoTheSame) {
  const auto [dtype, micro_batches] = GetParam();
  const ModelOptions options{.grad_dtype = dtype, .model_dtype = usual_model_dtype(dtype)};
  const SyntheticModel fused_model(gpt2_tensors(4), options), unfused_model(gpt2_tensors(4), options);
  FusedWindow fused(fused_model, micro_batches);
  UnfusedWindow unfused(unfused_model, micro_batches);
  for (int step = 0; step < 3; ++step) {
    fused.run();
    unfused.run();
    const StepReport a = fused.checked_report(), b = unfused.checked_report();
    EXPECT_EQ(a.micro_batches, micro_batches);
    EXPECT_NEAR(a.norm / b.norm, 1.0, 1e-6);
  }
  const std::vector<float> a = parameters_of(fused_model), b = parameters_of(unfused_model);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6f) << i;
}

TEST(Windows, TurnNeitherInfiniteNorDenormalInManySteps) {
  const SyntheticModel model(one_tensor(1000), {.grad_dtype = DType::kFloat16, .model_dtype = DType::kFloat16});
  FusedWindow fused(model, 16);
  UnfusedWindow unfused(model, 16);
  for (int step = 0; step < 3000; ++step) {
    fused.run();
    unfused.run();
    fused.checked_report();
    unfused.checked_report();
  }
  for (const float value : parameters_of(model)) ASSERT_TRUE(std::isnormal(value)) << value;
}

TEST(Windows, EvenOneElementIsClipped) {
  const SyntheticModel model(one_tensor(1), {.grad_dtype = DType::kFloat32});
  FusedWindow fused(model, 2);
  fused.run();
  EXPECT_LT(fused.checked_report().clip_coef, 1.0);
}

TEST(Windows, TellTheirMemory) {
  EXPECT_EQ(windows_num_bytes(10, {.grad_dtype = DType::kFloat16, .model_dtype = DType::kFloat16}), 320u);
  EXPECT_EQ(windows_num_bytes(10, {.grad_dtype = DType::kFloat32}), 320u);
}

}  // namespace
}  // namespace gradfuse::workload
