// Refused input of backends, parameter sets, tensor lists and passes: the message names the culprit, nothing changed.
#include <gradfuse/passes.hpp>

#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kFloat32 = DType::kFloat32;
constexpr Device kCuda{Device::Kind::kCuda, 1};

TEST(BadBackend, UnknownTargetsAndAbsurdThreadCountsAreRefused) {
  EXPECT_THAT([] { cpu_backend({.threads = 1, .target = "sse9"}); }, throws_saying("sse9", "scalar"));
  for (const int threads : {-1, -1000, 4097, std::numeric_limits<int>::max()}) {
    EXPECT_THAT([&] { cpu_backend({.threads = threads, .target = {}}); },
                throws_saying("threads", std::to_string(threads)));
  }
  EXPECT_THAT([] { ParameterSet(nullptr); }, throws_saying("backend"));
  EXPECT_THAT([] { ConstTensorList({}, nullptr); }, throws_saying("backend"));
}

TEST(BadBackend, DescribesWhatWasAskedFor) {
  for (const Machine& machine : all_machines()) {
    const BackendInfo info = describe(*machine.backend());
    EXPECT_EQ(info.name, "cpu");
    EXPECT_EQ(info.target, machine.target);
    EXPECT_EQ(info.threads, machine.threads);
  }
  EXPECT_EQ(cpu_targets().back(), "scalar");
  EXPECT_GE(describe(*cpu_backend()).threads, 1);
}

/// A set that holds "weight", of 8 elements with a BF16 copy.
struct BadParameter : testing::Test {
  BadParameter() { set.add({.name = "weight", .param = weight.view(), .model = copy.view()}); }
  /// The message names the tensor that was to be added, and the set is as it was.
  template <class... Parts>
  void refuse(const Parameter& parameter, const Parts&... parts) {
    EXPECT_THAT([&] { set.add(parameter); }, throws_saying(parts...));
    EXPECT_EQ(set.size(), 1u);
    EXPECT_EQ(set.numel(), 8u);
    EXPECT_EQ(set.num_groups(), 1u);
    EXPECT_EQ(set.find("bias"), std::nullopt);
    EXPECT_EQ(set.find("weight"), 0u);
    EXPECT_EQ(set.overlapping(bias.data(), 32), std::nullopt);
  }
  HostTensor weight{kFloat32, 8}, bias{kFloat32, 8}, copy{DType::kBFloat16, 8}, other{DType::kBFloat16, 8};
  ParameterSet set{cpu_backend()};
};

TEST_F(BadParameter, WithoutANameOrWithATakenOne) {
  refuse({.name = "", .param = bias.view(), .model = {}}, "tensor 1", "name");
  refuse({.name = "weight", .param = bias.view(), .model = {}}, "1 (weight)", "same name");
}
TEST_F(BadParameter, OfAnotherType) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
    const HostTensor wrong(dtype, 8);
    refuse({.name = "bias", .param = wrong.view(), .model = {}}, "1 (bias)", dtype_name(dtype).data(), "float32");
  }
  refuse({.name = "bias", .param = {bias.data(), 8, static_cast<DType>(9)}, .model = {}}, "1 (bias)", "dtype 9");
  const HostTensor wide(kFloat32, 8);
  refuse({.name = "bias", .param = bias.view(), .model = wide.view()}, "1 (bias)", "model", "float32", "bfloat16");
}
TEST_F(BadParameter, NullOrMisaligned) {
  refuse({.name = "bias", .param = {nullptr, 8}, .model = {}}, "1 (bias)", "null");
  refuse({.name = "bias", .param = {bias.data() + 2, 7}, .model = {}}, "1 (bias)", "aligned");
  refuse({.name = "bias", .param = bias.view(), .model = {nullptr, 8, DType::kFloat16}}, "1 (bias)", "model", "null");
  refuse({.name = "bias", .param = bias.view(), .model = {other.data() + 1, 7, DType::kFloat16}}, "(bias)", "aligned");
}
TEST_F(BadParameter, OfASizeThatDoesNotFit) {
  const HostTensor shorter(DType::kFloat16, 7);
  refuse({.name = "bias", .param = bias.view(), .model = shorter.view()}, "1 (bias)", "7", "8");
  for (const std::size_t numel : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1, SIZE_MAX / 4}) {
    refuse({.name = "bias", .param = {bias.data(), numel}, .model = {}}, "1 (bias)", std::to_string(numel));
  }
}
TEST_F(BadParameter, OnAnotherDevice) {
  refuse({.name = "bias", .param = {bias.data(), 8, kFloat32, kCuda}, .model = {}}, "1 (bias)", "cuda:1", "cpu");
  refuse({.name = "bias", .param = bias.view(), .model = {other.data(), 8, DType::kFloat16, kCuda}}, "(bias)",
         "cuda:1");
}
TEST_F(BadParameter, SharingMemory) {
  refuse({.name = "bias", .param = weight.view(), .model = {}}, "1 (bias)", "0 (weight)");
  refuse({.name = "bias", .param = {weight.data() + 28, 1}, .model = {}}, "1 (bias)", "0 (weight)");
  refuse({.name = "bias", .param = {copy.data() + 12, 1}, .model = {}}, "1 (bias)", "0 (weight)");
  refuse({.name = "bias", .param = bias.view(), .model = copy.view()}, "1 (bias)", "0 (weight)");
  refuse({.name = "bias", .param = bias.view(), .model = {weight.data(), 8, DType::kFloat16}}, "1 (bias)",
         "0 (weight)");
  refuse({.name = "bias", .param = bias.view(), .model = {bias.data() + 16, 8, DType::kFloat16}}, "1 (bias)",
         "overlaps");
}
TEST_F(BadParameter, TouchingIsNotSharing) {
  HostTensor both(kFloat32, 16);
  EXPECT_EQ(set.add({.name = "low", .param = {both.data(), 8}, .model = {}}), 1u);
  EXPECT_EQ(set.add({.name = "high", .param = {both.data() + 32, 8}, .model = {}}), 2u);
  EXPECT_EQ(set.overlapping(both.data() + 31, 1), 1u);
  EXPECT_EQ(set.overlapping(both.data() + 32, 1), 2u);
}
TEST_F(BadParameter, OfAnAbsurdGroup) {
  refuse({.name = "bias", .param = bias.view(), .model = {}, .group = SIZE_MAX}, "1 (bias)", "group");
}

TEST(BadTensorList, NamesTheIndexOfTheTensor) {
  HostTensor a(kFloat32, 8), b(kFloat32, 8);
  const auto make = [&](const TensorView& bad) { return [&, bad] { TensorList({a.view(), bad}, cpu_backend()); }; };
  EXPECT_THAT(make({nullptr, 8}), throws_saying("tensor 1", "null"));
  EXPECT_THAT(make({b.data() + 1, 7}), throws_saying("tensor 1", "aligned"));
  EXPECT_THAT(make({b.data(), 8, kFloat32, kCuda}), throws_saying("tensor 1", "cuda:1"));
  EXPECT_THAT(make({b.data(), 8, static_cast<DType>(77)}), throws_saying("tensor 1", "77"));
  EXPECT_THAT(make({b.data(), SIZE_MAX / 2}), throws_saying("tensor 1", "memory"));
  EXPECT_THAT(make({a.data() + 28, 1}), throws_saying("0", "1", "share"));
  EXPECT_NO_THROW(ConstTensorList({a.view(), a.view()}, cpu_backend())) << "reading twice is fine";
}

/// Two tensors a list, filled with 1, to see that a refused pass wrote nothing.
struct BadPass : testing::Test {
  BadPass() {
    for (HostTensor* tensor : {&a, &b, &c, &half}) tensor->fill(1.0);
  }
  ~BadPass() override {
    for (const HostTensor* tensor : {&a, &b, &c, &half}) {
      for (std::size_t i = 0; i < tensor->numel(); ++i) EXPECT_EQ(tensor->get(i), 1.0) << "a refused pass wrote this";
    }
  }
  TensorList list(std::vector<TensorView> views) const { return TensorList(std::move(views), backend); }
  std::shared_ptr<const Backend> backend = cpu_backend();
  HostTensor a{kFloat32, 8}, b{kFloat32, 8}, c{kFloat32, 9}, half{DType::kFloat16, 8};
};

TEST_F(BadPass, OfListsOfDifferentShape) {
  EXPECT_THAT(
      [&] {
        scale(list({a.view()}), list({a.view(), b.view()}), 2.0f);
      },
      throws_saying("`in`", "1", "`out`", "2"));
  EXPECT_THAT(
      [&] {
        scale(list({a.view(), b.view()}), list({b.view(), c.view()}), 2.0f);
      },
      throws_saying("tensor 1", "8", "9"));
  EXPECT_THAT([&] { axpby(1.0f, list({a.view()}), 1.0f, list({c.view()}), list({b.view()})); },
              throws_saying("tensor 0"));
}
TEST_F(BadPass, OfTypesThatDoNotFit) {
  const TensorList f = list({a.view()}), g = list({b.view()}), h = list({half.view()});
  EXPECT_THAT([&] { axpby(1.0f, f, 1.0f, h, g); }, throws_saying("tensor 0", "`y`", "float16"));
  EXPECT_THAT([&] { axpby(1.0f, f, 1.0f, g, h); }, throws_saying("tensor 0", "`out`", "float16"));
  EXPECT_THAT([&] { sgd_step({f, h}, {}, 1); }, throws_saying("`grad`", "float16"));
  EXPECT_THAT([&] { sgd_step({h, f}, {}, 1); }, throws_saying("`param`", "float16"));
}
TEST_F(BadPass, OfTensorsThatPartlyOverlap) {
  const TensorView low{a.data(), 7}, high{a.data() + 4, 7}, as_half{a.data(), 7, DType::kFloat16};
  EXPECT_THAT([&] { scale(list({low}), list({high}), 2.0f); }, throws_saying("tensor 0", "overlap"));
  EXPECT_THAT([&] { scale(list({low}), list({as_half}), 2.0f); }, throws_saying("tensor 0", "overlap"));
  EXPECT_THAT([&] { axpby(2.0f, list({low}), 2.0f, list({low}), list({high})); }, throws_saying("overlap"));
  EXPECT_THAT([&] { sgd_step({list({low}), list({high})}, {}, 1); }, throws_saying("overlap"));
}
TEST_F(BadPass, OfALimitThatIsNegativeOrNan) {
  for (const double max_norm : {-1.0, -kInf, kNan}) {
    EXPECT_THAT([&] { clip(list({a.view()}), 10.0, max_norm); }, throws_saying("max_norm"));
  }
}
TEST_F(BadPass, OfAStepOutOfRange) {
  const TensorList p = list({a.view()}), g = list({b.view()});
  const HostTensor m(kFloat32, 8), v(kFloat32, 8);
  const TensorList exp_avg = list({m.view()}), exp_avg_sq = list({v.view()});
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_THAT([&] { sgd_step({p, g}, {}, step); }, throws_saying("step", std::to_string(step)));
    EXPECT_THAT([&] { adamw_step({p, g, exp_avg, exp_avg_sq}, {}, step); }, throws_saying("step"));
    EXPECT_THAT([&] { adam_step({p, g, exp_avg, exp_avg_sq}, {}, step); }, throws_saying("step"));
  }
  EXPECT_THAT([&] { adamw_step({p, g, exp_avg, exp_avg_sq}, {.amsgrad = true}, 1); }, throws_saying("max_exp_avg_sq"));
  EXPECT_THAT([&] { adamw_step({p, g, exp_avg, exp_avg_sq, &exp_avg}, {}, 1); }, throws_saying("max_exp_avg_sq"));
  EXPECT_THAT([&] { sgd_step({p, g}, {.momentum = 0.9}, 1); }, throws_saying("momentum_buffer"));
  EXPECT_THAT([&] { sgd_step({p, g, &exp_avg}, {}, 1); }, throws_saying("momentum_buffer"));
  EXPECT_THAT([&] { sgd_step({p, g}, {.lr = kNan}, 1); }, throws_saying("lr"));
  EXPECT_THAT([&] { adam_step({p, g, exp_avg, exp_avg_sq}, {.beta1 = 1.0}, 1); }, throws_saying("beta1"));
}
TEST_F(BadPass, OfAParameterThatIsItsOwnStateOrGradient) {
  const TensorList p = list({a.view()}), g = list({b.view()});
  const HostTensor m(kFloat32, 8);
  const TensorList state = list({m.view()});
  EXPECT_THAT([&] { adamw_step({p, g, p, state}, {}, 1); }, throws_saying("overlap"));
  EXPECT_THAT([&] { adamw_step({p, g, state, state}, {}, 1); }, throws_saying("overlap"));
  EXPECT_THAT([&] { sgd_step({p, g, &p}, {.momentum = 0.9}, 1); }, throws_saying("overlap"));
}

}  // namespace
}  // namespace gradfuse::test
