// Norms: the promised order of summation, extreme values, NaN, repeatability; and clipping by them.
#include <gradfuse/passes.hpp>

#include <bit>
#include <cmath>
#include <limits>

#include "tests/core/reference.hpp"
#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using NormOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, NormOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> squares_of(const HostTensor& tensor) {
  std::vector<double> squares;
  for (std::size_t i = 0; i < tensor.numel(); ++i) {
    const double x = static_cast<float>(tensor.get(i));
    squares.push_back(x * x);
  }
  return squares;
}

TEST_P(NormOn, GlobalAndPerTensorAreTheBitsOfThePromisedOrder) {
  Random random(1);
  for (const DType dtype : kGradDTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    std::vector<HostTensor> tensors;
    for (const std::size_t numel : {1, 0, 7, 255, 256, 257, 4095, 4096, 4097, 20000}) {
      tensors.push_back(random_tensor(random, dtype, numel, numel % 5));
    }
    const ConstTensorList list(views_of(tensors), backend);
    std::vector<double> sums;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      sums.push_back(reference_sum(squares_of(tensors[t])));
      EXPECT_EQ(l2_norm_per_tensor(list)[t], std::sqrt(sums[t])) << "tensor " << t;
    }
    EXPECT_EQ(l2_norm(list), std::sqrt(reference_sum(sums)));
  }
}

TEST_P(NormOn, MoreChunksThanOneLevelHoldsAreFoldedAgain) {
  // 4096 chunks of 4096 are one level of the tree, so this tensor of 2^24 + 5 elements needs two.
  constexpr std::size_t kNumel = (std::size_t{1} << 24) + 5;
  static const HostTensor tensor = [] {
    HostTensor values(DType::kBFloat16, kNumel);
    for (std::size_t i = 0; i < kNumel; ++i) values.set_bits(i, 0x3f80u + i * 7919u % 128u);
    return values;
  }();
  static const double expected = std::sqrt(reference_sum(squares_of(tensor)));
  EXPECT_EQ(l2_norm(ConstTensorList({tensor.view()}, backend)), expected);
}

TEST_P(NormOn, FiftyFiveRandomListsAgreeWithAPlainSum) {
  Random random(2);
  for (int repeat = 0; repeat < 55; ++repeat) {
    std::vector<HostTensor> tensors;
    long double sum = 0.0L;
    for (int t = 0; t < 3; ++t) {
      tensors.push_back(random_tensor(random, DType::kFloat32, static_cast<std::size_t>(uniform(random, 0, 3000))));
      for (const double square : squares_of(tensors.back())) sum += square;
    }
    // The tree is at most 16 + 8 + 2 additions deep for 3000 elements, each off by 2^-53 of what it gives; positive
    // terms.
    const double expected = static_cast<double>(std::sqrt(sum));
    EXPECT_LE(std::fabs(l2_norm(ConstTensorList(views_of(tensors), backend)) - expected), 32 * 0x1p-53 * expected);
  }
}

TEST_P(NormOn, SquaresThatFloat32CannotHoldAreSummed) {
  const HostTensor large = tensor_of(DType::kFloat32, {1e20, 1e20, 1e20, 1e20});
  const HostTensor small = tensor_of(DType::kFloat32, {1e-30, 1e-30, 1e-30, 1e-30});
  const HostTensor half = tensor_of(DType::kFloat16, {60000.0, 60000.0, 60000.0, 60000.0});
  EXPECT_EQ(l2_norm(ConstTensorList({large.view()}, backend)), 2.0 * double{1e20f});
  EXPECT_EQ(l2_norm(ConstTensorList({small.view()}, backend)), 2.0 * double{1e-30f});
  EXPECT_EQ(l2_norm(ConstTensorList({half.view()}, backend)), 120000.0);
}

TEST_P(NormOn, NothingAndZerosHaveNormZero) {
  const HostTensor zeros(DType::kFloat16, 5000);
  EXPECT_EQ(l2_norm(ConstTensorList({zeros.view()}, backend)), 0.0);
  EXPECT_EQ(inf_norm(ConstTensorList({zeros.view()}, backend)), 0.0);
  EXPECT_EQ(l2_norm(ConstTensorList({{}, {}}, backend)), 0.0);
}

TEST_P(NormOn, NanAndInfinityReachEveryNormFromEveryPlace) {
  Random random(3);
  for (const DType dtype : kGradDTypes) {
    for (const std::size_t at : {0, 15, 16, 4095, 4096, 8999, 9000}) {
      SCOPED_TRACE(testing::Message() << dtype_name(dtype) << ", element " << at);
      std::vector<HostTensor> tensors{random_tensor(random, dtype, 3), random_tensor(random, dtype, 9001)};
      const ConstTensorList list(views_of(tensors), backend);
      tensors[1].set(at, -kInf);
      EXPECT_EQ(l2_norm(list), kInf);
      EXPECT_EQ(inf_norm(list), kInf);
      EXPECT_TRUE(std::isfinite(l2_norm_per_tensor(list)[0]));
      tensors[0].set(2, kNan);  // beside the infinity
      EXPECT_TRUE(std::isnan(l2_norm(list)));
      EXPECT_TRUE(std::isnan(inf_norm(list)));
    }
  }
}

TEST_P(NormOn, TheInfinityNormIsTheLargestMagnitude) {
  Random random(4);
  for (const DType dtype : kGradDTypes) {
    for (const std::size_t numel : {1, 17, 4097, 20000}) {
      const HostTensor tensor = random_tensor(random, dtype, numel, 1);
      double expected = 0.0;
      for (std::size_t i = 0; i < numel; ++i) {
        expected = std::max(expected, std::fabs(double{static_cast<float>(tensor.get(i))}));
      }
      EXPECT_EQ(inf_norm(ConstTensorList({tensor.view()}, backend)), expected) << dtype_name(dtype) << " " << numel;
    }
  }
}

TEST(Norm, IsTheSameBitsInAHundredRunsOnEveryMachine) {
  Random random(5);
  std::vector<HostTensor> tensors;
  for (const std::size_t numel : {30001, 5, 70000}) tensors.push_back(random_tensor(random, DType::kFloat32, numel));
  std::optional<std::uint64_t> expected;
  for (const Machine& machine : all_machines()) {
    const ConstTensorList list(views_of(tensors), machine.backend());
    for (int run = 0; run < 100; ++run) {
      const auto bits = std::bit_cast<std::uint64_t>(l2_norm(list));
      if (!expected) expected = bits;
      ASSERT_EQ(bits, *expected) << machine << ", run " << run;
    }
  }
}

TEST_P(NormOn, ClippingBelowTheLimitWritesNoByte) {
  HostTensor tensor = tensor_of(DType::kFloat32, {3.0, 4.0, -0.0, 0x1p-140});
  tensor.set_bits(1, 0x7fa00001u);  // a signalling NaN would come back quiet from any arithmetic
  const std::vector<std::byte> before(tensor.data(), tensor.data() + 16);
  const TensorList list({tensor.view()}, backend);
  clip(list, 5.0, 10.0);
  clip(list, 5.0, kInf);
  clip(list, 0.0, 1.0);
  EXPECT_TRUE(std::equal(before.begin(), before.end(), tensor.data()));
}

TEST_P(NormOn, ClippingGivesWhatTorchGives) {
  // torch.nn.utils.clip_grad_norm_ on [3, 4] (torch-contract.md, section 3). Torch forms the coefficient in FP32, with
  // three roundings of 2^-24; here FP64 and one. With the rounding of the product: 5 * 2^-24, relative.
  const struct {
    double max_norm, first, second;
  } cases[] = {{1.0, 0.59999990, 0.79999983}, {5.0, 2.99999928, 3.99999905}, {10.0, 3.0, 4.0}, {0.0, 0.0, 0.0}};
  for (const auto& c : cases) {
    HostTensor tensor = tensor_of(DType::kFloat32, {3.0, 4.0});
    const TensorList list({tensor.view()}, backend);
    clip(list, l2_norm(list), c.max_norm);
    EXPECT_LE(std::fabs(tensor.get(0) - c.first), 5 * 0x1p-24 * c.first + 0.5e-8) << c.max_norm;  // printed to 8 places
    EXPECT_LE(std::fabs(tensor.get(1) - c.second), 5 * 0x1p-24 * c.second + 0.5e-8) << c.max_norm;
  }
}

TEST_P(NormOn, ANormOfExactlyTheLimitIsClippedByTheMillionthAsTorchDoes) {
  OwnedSet set(backend);
  set.add(HostTensor(DType::kFloat32, 2));
  Window window(set.params);
  Sgd optimizer(set.params, {.lr = 1.0});
  const StepReport report =
      step_on(window, optimizer, {tensor_of(DType::kFloat32, {3.0, 4.0})}, {.max_grad_norm = 5.0});
  EXPECT_EQ(report.norm, 5.0);
  EXPECT_EQ(report.clip_coef, 5.0 / (5.0 + 1e-6));
  EXPECT_EQ(set.param[0].get(0), -3.0f * static_cast<float>(report.clip_coef));
  EXPECT_LT(report.clip_coef, 1.0);
}

}  // namespace
}  // namespace gradfuse::test
