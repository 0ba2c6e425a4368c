// Refused input of windows and optimizers: the message names tensor or option, and training goes on as if nothing was.
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
constexpr auto kFloat32 = DType::kFloat32;

TEST(BadWindow, OptionsOutOfRange) {
  OwnedSet set;
  set.add(HostTensor(kFloat32, 8));
  EXPECT_THAT([&] { Window(set.params, {.steps = 0}); }, throws_saying("steps"));
  EXPECT_THAT([&] { Window(set.params, {.accumulate = DType::kFloat16}); }, throws_saying("float16", "float32"));
  EXPECT_THAT([&] { Window(set.params, {.accumulate = DType::kBFloat16}); }, throws_saying("bfloat16"));
  for (const double total : {0.0, -1.0, kNan, kInf}) {
    EXPECT_THAT([&] { Window(set.params, {.fixed_total = total}); }, throws_saying("fixed_total")) << total;
  }
}

/// Two tensors, "t0" of 8 elements with a model copy and "t1" of 3; a window that holds one micro-batch of ones.
struct BadMicroBatch : testing::Test {
  BadMicroBatch() {
    set.add(HostTensor(kFloat32, 8), DType::kBFloat16);
    set.add(HostTensor(kFloat32, 3));
    ones = set.zero_grads();
    for (HostTensor& grad : ones) grad.fill(1.0);
    window.emplace(set.params, WindowOptions{.steps = 3});
    window->add(views_of(ones));
  }
  /// Refused as a whole micro-batch and as a list, twice: the second time must not find the first remembered as good.
  template <class... Parts>
  void refuse(const ConstTensorView& first, const ConstTensorView& second, const Parts&... parts) {
    for (int again = 0; again < 2; ++again) {
      EXPECT_THAT([&] { window->add(std::vector{first, second}); }, throws_saying(parts...));
      EXPECT_THAT([&] { window->add(std::vector<Gradient>{{0, first}, {1, second}}); }, throws_saying(parts...));
    }
    expect_untouched();
  }
  void expect_untouched() {
    EXPECT_EQ(window->micro_batches(), 1u);
    EXPECT_EQ(window->total_count(), 1.0);
    EXPECT_FALSE(window->is_full());
    for (std::size_t t = 0; t < 2; ++t) EXPECT_TRUE(same_bits(copy_of(window->accumulator(t)), ones[t]));
  }
  /// The window, after all that was refused, gives what it would have given.
  ~BadMicroBatch() override {
    Sgd optimizer(set.params, {.lr = 1.0});
    window->add(views_of(ones), {.weight = 3.0, .is_last = true});
    optimizer.step(*window);
    for (const HostTensor& param : set.param) {
      for (std::size_t i = 0; i < param.numel(); ++i) EXPECT_EQ(param.get(i), -1.0);
    }
  }
  OwnedSet set;
  std::vector<HostTensor> ones;
  std::optional<Window> window;
};

TEST_F(BadMicroBatch, WithTooFewOrTooManyGradients) {
  EXPECT_THAT([&] { window->add(std::vector<ConstTensorView>{ones[0].view()}); }, throws_saying("1", "2"));
  EXPECT_THAT([&] { window->add(std::vector<ConstTensorView>(3)); }, throws_saying("3", "2"));
  EXPECT_THAT([&] { window->add(std::vector<ConstTensorView>{}); }, throws_saying("0", "2"));
  EXPECT_THAT([&] { window->add(std::vector<Gradient>{{2, ones[0].view()}}); }, throws_saying("tensor 2", "2"));
  EXPECT_THAT(
      [&] {
        window->add(std::vector<Gradient>{{0, ones[0].view()}, {SIZE_MAX, {}}});
      },
      throws_saying("tensor"));
  expect_untouched();
}
TEST_F(BadMicroBatch, OfAnotherSizeTypeOrDevice) {
  const ConstTensorView good = ones[0].view();
  const HostTensor longer(kFloat32, 4), empty(kFloat32, 0);
  refuse(good, longer.view(), "1 (t1)", "4", "3");
  refuse(good, {empty.data(), 0, kFloat32}, "1 (t1)", "0", "3");
  refuse(good, {ones[1].data(), 3, static_cast<DType>(4)}, "1 (t1)", "dtype 4");
  refuse(good, {ones[1].data(), 3, kFloat32, {Device::Kind::kCuda, 0}}, "1 (t1)", "cuda:0", "cpu");
  refuse(good, {ones[1].data(), SIZE_MAX / 2, kFloat32}, "1 (t1)");
}
TEST_F(BadMicroBatch, NullOrMisaligned) {
  const HostTensor wide(DType::kFloat64, 4);
  refuse({nullptr, 8, DType::kFloat16}, ones[1].view(), "0 (t0)", "null");
  refuse(ones[0].view(), {wide.data() + 2, 3, kFloat32}, "1 (t1)", "aligned");
  refuse(ones[0].view(), {wide.data() + 4, 3, DType::kFloat64}, "1 (t1)", "aligned", "float64");
}
TEST_F(BadMicroBatch, SharingMemoryWithAParameterModelCopyOrAccumulator) {
  refuse(set.param[0].view(), ones[1].view(), "0 (t0)", "parameter 0 (t0)");
  refuse({set.param[1].data(), 1, kFloat32}, ones[1].view(), "0 (t0)");
  refuse(ones[0].view(), {set.param[0].data() + 20, 3, kFloat32}, "1 (t1)", "0 (t0)");
  refuse(set.model[0].view(), ones[1].view(), "0 (t0)", "parameter 0 (t0)");
  refuse(window->accumulator(0), ones[1].view(), "0 (t0)", "accumulator", "claim");
  refuse(ones[0].view(), {static_cast<const float*>(window->accumulator(0).data) + 2, 3, kFloat32}, "1 (t1)",
         "accumulator");
}
TEST_F(BadMicroBatch, WithWeightsAndCountsOutOfRange) {
  for (const double bad : {-1.0, -1e-300, kNan, kInf, -kInf}) {
    EXPECT_THAT([&] { window->add(views_of(ones), {.weight = bad}); }, throws_saying("weight")) << bad;
    EXPECT_THAT([&] { window->add(std::vector<Gradient>{}, {.weight = bad}); }, throws_saying("weight")) << bad;
    EXPECT_THAT([&] { window->add(views_of(ones), {.count = bad}); }, throws_saying("count")) << bad;
  }
  EXPECT_THAT([&] { window->add(views_of(ones), {.weight = 1e39}); }, throws_saying("weight", "float32"));
  EXPECT_THAT([&] { window->add(views_of(ones), {.weight = 1e-60}); }, throws_saying("weight", "float32"));
  expect_untouched();
}
TEST_F(BadMicroBatch, ClaimsOfNoTensor) {
  EXPECT_THAT([&] { window->claim(2); }, throws_saying("2"));
  EXPECT_THAT([&] { window->accumulator(2); }, throws_saying("2"));
  expect_untouched();
}

TEST(FullWindow, TakesNoMoreUntilItIsSteppedOrDiscarded) {
  OwnedSet set;
  set.add(HostTensor(kFloat32, 2));
  Window window(set.params, {.steps = 2});
  Sgd optimizer(set.params, {.lr = 1.0});
  const std::vector<HostTensor> ones{tensor_of(kFloat32, {1.0, 1.0})};
  for (const bool ends_early : {false, true}) {
    set.param[0].fill(0.0);
    window.add(views_of(ones), {.is_last = ends_early});
    if (!ends_early) window.add(views_of(ones));
    EXPECT_THAT([&] { window.add(views_of(ones)); }, throws_saying("full"));
    EXPECT_THAT([&] { window.add(std::vector<Gradient>{}); }, throws_saying("full"));
    EXPECT_THAT([&] { window.claim(0); }, throws_saying("full"));
    optimizer.step(window);
    EXPECT_TRUE(same_bits(set.param[0], tensor_of(kFloat32, {-1.0, -1.0})));
  }
}

TEST(BadStep, IsRefusedAndTheWindowKept) {
  OwnedSet set, other;
  for (OwnedSet* each : {&set, &other}) each->add(tensor_of(kFloat32, {0.0}), DType::kBFloat16);
  Window window(set.params, {.steps = 2}), foreign(other.params);
  Sgd optimizer(set.params, {.lr = 1.0, .momentum = 0.9});
  const std::vector<HostTensor> ones{tensor_of(kFloat32, {1.0})};
  LossScaler scaler;
  const Snapshot before = snapshot(set, optimizer);
  EXPECT_THAT([&] { optimizer.step(window, {.scaler = &scaler}); }, throws_saying("micro-batch"));
  foreign.add(views_of(ones));
  EXPECT_THAT([&] { optimizer.step(foreign, {.scaler = &scaler}); }, throws_saying("ParameterSet"));
  EXPECT_EQ(foreign.micro_batches(), 1u);
  window.add(views_of(ones));
  for (const double max_norm : {-1.0, kNan, -kInf}) {
    EXPECT_THAT([&] { optimizer.step(window, {.max_grad_norm = max_norm, .scaler = &scaler}); },
                throws_saying("max_grad_norm"));
  }
  optimizer.group(0).lr = kNan;
  EXPECT_THAT([&] { optimizer.step(window, {.scaler = &scaler}); }, throws_saying("group 0", "lr"));
  optimizer.group(0).lr = 1.0;
  window.claim(0);
  EXPECT_THAT([&] { optimizer.step(window, {.scaler = &scaler}); }, throws_saying("claim"));
  EXPECT_TRUE(same(snapshot(set, optimizer), before));
  EXPECT_EQ(scaler.state().growth_tracker, 0);
  EXPECT_EQ(window.micro_batches(), 1u);
  window.add(views_of(ones));
  optimizer.step(window);
  EXPECT_EQ(set.param[0].get(0), -1.0);
  EXPECT_EQ(optimizer.last_report().window, 0u);
}

template <class O, class Options>
void refuse_options(const ParameterSet& params, const Options& bad, const std::string& name) {
  SCOPED_TRACE(name);
  EXPECT_THAT([&] { O(params, bad); }, throws_saying("group 0", name));
  O optimizer(params);
  optimizer.group(1) = bad;
  Window window(params);
  std::vector<ConstTensorView> none(params.size());
  window.add(none);
  EXPECT_THAT([&] { optimizer.step(window); }, throws_saying("group 1", name));
  EXPECT_EQ(window.micro_batches(), 1u);
}

TEST(BadHyperParameter, IsRefusedByTheConstructorAndByTheStep) {
  OwnedSet set;
  set.add(HostTensor(kFloat32, 1), std::nullopt, 0);
  set.add(HostTensor(kFloat32, 1), std::nullopt, 1);
  for (const double bad : {-1e-3, kNan, kInf, 1e39}) {
    refuse_options<AdamW>(set.params, AdamWOptions{.lr = bad}, "lr");
    refuse_options<Adam>(set.params, AdamOptions{.lr = bad}, "lr");
    refuse_options<Sgd>(set.params, SgdOptions{.lr = bad}, "lr");
    refuse_options<AdamW>(set.params, AdamWOptions{.eps = bad}, "eps");
    refuse_options<Adam>(set.params, AdamOptions{.beta1 = bad}, "beta1");
    refuse_options<AdamW>(set.params, AdamWOptions{.beta2 = bad}, "beta2");
    refuse_options<Sgd>(set.params, SgdOptions{.momentum = bad}, "momentum");
  }
  refuse_options<AdamW>(set.params, AdamWOptions{.beta1 = 1.0}, "beta1");
  refuse_options<Adam>(set.params, AdamOptions{.beta2 = 1.0}, "beta2");
  for (const double bad : {kNan, kInf, -kInf, 1e39}) {
    refuse_options<AdamW>(set.params, AdamWOptions{.weight_decay = bad}, "weight_decay");
    refuse_options<Sgd>(set.params, SgdOptions{.momentum = 0.9, .dampening = bad}, "dampening");
    refuse_options<Sgd>(set.params, SgdOptions{.weight_decay = bad}, "weight_decay");
  }
  refuse_options<Sgd>(set.params, SgdOptions{.nesterov = true}, "nesterov");
  refuse_options<Sgd>(set.params, SgdOptions{.momentum = 0.9, .dampening = 0.5, .nesterov = true}, "nesterov");
}

TEST(BadOptimizerUse, GroupsAndTensorsOutOfRangeAreNamed) {
  OwnedSet set;
  set.add(HostTensor(kFloat32, 1), std::nullopt, 2);
  AdamW adamw(set.params);
  Adam adam(set.params);
  Sgd sgd(set.params);
  EXPECT_THAT([&] { adamw.group(3); }, throws_saying("3"));
  EXPECT_THAT([&] { adam.group(SIZE_MAX); }, throws_saying("group"));
  EXPECT_THAT([&] { sgd.group(3); }, throws_saying("3"));
  EXPECT_THAT([&] { adamw.step_count(1); }, throws_saying("1"));
  EXPECT_THAT([&] { adamw.set_step_count(1, 5); }, throws_saying("1"));
  EXPECT_THAT([&] { adamw.set_step_count(0, -1); }, throws_saying("0", "-1"));
  EXPECT_THAT([&] { adamw.state(1); }, throws_saying("1"));
  EXPECT_EQ(adamw.step_count(0), 0);
}

TEST(BadOptimizerUse, AmsgradAndMomentumMayNotBeTurnedOnOrOffAfterTheFirstStep) {
  OwnedSet set;
  set.add(HostTensor(kFloat32, 1), DType::kFloat16);
  Window window(set.params);
  AdamW adamw(set.params);
  Sgd sgd(set.params, {.momentum = 0.9});
  for (Optimizer* optimizer : {static_cast<Optimizer*>(&adamw), static_cast<Optimizer*>(&sgd)}) {
    step_on(window, *optimizer, set.zero_grads());
  }
  const Snapshot before[] = {snapshot(set, adamw), snapshot(set, sgd)};
  adamw.group(0).amsgrad = true;
  sgd.group(0).momentum = 0.0;
  const std::vector<HostTensor> grads = set.zero_grads();
  window.add(views_of(grads));
  EXPECT_THAT([&] { adamw.step(window); }, throws_saying("group 0", "amsgrad"));
  EXPECT_THAT([&] { sgd.step(window); }, throws_saying("group 0", "momentum"));
  adamw.group(0).amsgrad = false;
  sgd.group(0).momentum = 0.5;
  EXPECT_TRUE(same(snapshot(set, adamw), before[0]));
  EXPECT_TRUE(same(snapshot(set, sgd), before[1]));
}

}  // namespace
}  // namespace gradfuse::test
