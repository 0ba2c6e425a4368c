// Gradients that are not finite: which micro-batch and tensor they came in with, and that the window is skipped for it.
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using WindowOverflowOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, WindowOverflowOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// Four micro-batches of FP16 gradients for three tensors; the caller spoils some.
struct FourMicroBatches {
  explicit FourMicroBatches(std::shared_ptr<const Backend> backend, std::uint64_t seed = 1) : set(std::move(backend)) {
    Random random(seed);
    for (const std::size_t numel : {5, 40001, 4097})
      set.add(moderate_tensor(random, DType::kFloat32, numel), DType::kFloat16);
    for (int b = 0; b < 4; ++b) {
      grads.emplace_back();
      for (const HostTensor& param : set.param)
        grads[b].push_back(moderate_tensor(random, DType::kFloat16, param.numel()));
    }
  }
  const StepReport& step(Window& window, Optimizer& optimizer, LossScaler* scaler = nullptr) {
    for (const auto& micro_batch : grads) window.add(views_of(micro_batch), {.is_last = &micro_batch == &grads.back()});
    optimizer.step(window, {.scaler = scaler});
    return optimizer.last_report();
  }
  OwnedSet set;
  std::vector<std::vector<HostTensor>> grads;
};

TEST_P(WindowOverflowOn, EveryMicroBatchIsNamedThePendingOneIncluded) {
  FourMicroBatches run(backend);  // every step is skipped, so one will do for all
  Window window(run.set.params, {.steps = 4});
  AdamW optimizer(run.set.params);
  for (const double value : {kInf, -kInf, kNan}) {
    for (std::size_t b = 0; b < 4; ++b) {
      for (const auto& [tensor, element] :
           {std::pair<std::size_t, std::size_t>{0, 0}, {1, 40000}, {2, 4096}, {1, 4096}}) {
        SCOPED_TRACE(testing::Message() << value << " in micro-batch " << b << ", tensor " << tensor);
        HostTensor& grad = run.grads[b][tensor];
        const double before = grad.get(element);
        grad.set(element, value);
        LossScaler scaler;
        const StepReport& report = run.step(window, optimizer, &scaler);
        grad.set(element, before);
        ASSERT_EQ(report.outcome, StepOutcome::kNonFinite);
        ASSERT_TRUE(report.non_finite.has_value());
        EXPECT_EQ(report.non_finite->micro_batch, b);
        EXPECT_EQ(report.non_finite->tensor, tensor);
        EXPECT_EQ(report.micro_batches, 4u);
        EXPECT_EQ(report.loss_scale, 65536.0f);
        EXPECT_EQ(scaler.scale(), 32768.0f) << "halved once a window";
      }
    }
  }
}

TEST_P(WindowOverflowOn, TheFirstOfSeveralIsNamed) {
  FourMicroBatches run(backend);
  run.grads[1][2].set(7, kInf);
  run.grads[2][0].set(0, kNan);
  run.grads[2][2].set(7, -kInf);  // inf - inf
  run.grads[3][1].set(0, kNan);
  Window window(run.set.params, {.steps = 4});
  AdamW optimizer(run.set.params);
  const StepReport& report = run.step(window, optimizer);
  ASSERT_TRUE(report.non_finite.has_value());
  EXPECT_EQ(report.non_finite->micro_batch, 1u);
  EXPECT_EQ(report.non_finite->tensor, 2u);
}

TEST_P(WindowOverflowOn, ASumThatOverflowsIsFoundThoughEveryGradientIsFinite) {
  for (const std::size_t steps : {2, 3}) {  // in the pending micro-batch, and in a merged one
    OwnedSet set(backend);
    set.add(HostTensor(DType::kFloat32, 4100));
    std::vector<HostTensor> grads = set.zero_grads();
    grads[0].set(4099, 3e38);
    const std::vector<HostTensor> zeros = set.zero_grads();
    Window window(set.params, {.steps = steps});
    Sgd optimizer(set.params);
    window.add(views_of(grads));
    window.add(views_of(grads));
    if (steps == 3) window.add(views_of(zeros));
    optimizer.step(window);
    ASSERT_EQ(optimizer.last_report().outcome, StepOutcome::kNonFinite);
    EXPECT_EQ(optimizer.last_report().non_finite->micro_batch, 1u);
    EXPECT_EQ(optimizer.last_report().non_finite->tensor, 0u);
  }
}

TEST_P(WindowOverflowOn, AnOverflowOfATiedWeightIsNamedWhicheverProducerBroughtIt) {
  for (const std::size_t bad : {0, 1}) {
    for (const std::size_t steps : {2, 3}) {
      OwnedSet set(backend);
      set.add(HostTensor(DType::kFloat32, 20));
      std::vector<HostTensor> producers{HostTensor(DType::kFloat16, 20), HostTensor(DType::kFloat16, 20)};
      const HostTensor good(DType::kFloat16, 20);
      producers[bad].set(19, kInf);
      Window window(set.params, {.steps = steps});
      Sgd optimizer(set.params);
      window.add(std::vector<Gradient>{{0, good.view()}});
      window.add(std::vector<Gradient>{{0, producers[0].view()}, {0, producers[1].view()}});
      if (steps == 3) window.add(std::vector<Gradient>{{0, good.view()}});
      optimizer.step(window);
      ASSERT_TRUE(optimizer.last_report().non_finite.has_value());
      EXPECT_EQ(optimizer.last_report().non_finite->micro_batch, 1u) << "producer " << bad << ", " << steps << " steps";
    }
  }
}

TEST_P(WindowOverflowOn, ANormThatFloat32CannotHoldIsSkippedAndNoTensorIsNamed) {
  OwnedSet set(backend);
  for (int t = 0; t < 4; ++t) set.add(HostTensor(DType::kFloat32, 1), DType::kBFloat16);
  std::vector<HostTensor> grads = set.zero_grads();
  for (HostTensor& grad : grads) grad.fill(2e38);  // each is finite, the norm is 4e38
  Window window(set.params);
  Sgd optimizer(set.params, {.momentum = 0.9});
  const Snapshot before = snapshot(set, optimizer);
  const StepReport report = step_on(window, optimizer, grads, {.max_grad_norm = 1.0});
  EXPECT_EQ(report.outcome, StepOutcome::kNonFinite);
  ASSERT_TRUE(report.non_finite.has_value());
  EXPECT_EQ(report.non_finite->tensor, std::nullopt);
  EXPECT_TRUE(same(snapshot(set, optimizer), before));
  LossScaler scaler = LossScaler::fixed(2.0);
  step_on(window, optimizer, grads, {.scaler = &scaler});
  EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kApplied) << "unscaled, the norm is 2e38";
}

TEST_P(WindowOverflowOn, TheNextWindowIsClean) {
  FourMicroBatches run(backend), clean(backend);
  Window window(run.set.params, {.steps = 4}), clean_window(clean.set.params, {.steps = 4});
  AdamW optimizer(run.set.params), clean_optimizer(clean.set.params);
  run.grads[0][0].set(0, kNan);
  run.step(window, optimizer);
  EXPECT_TRUE(optimizer.last_report().is_skipped());
  run.grads[0][0] = clean.grads[0][0];
  EXPECT_EQ(run.step(window, optimizer).outcome, StepOutcome::kApplied);
  EXPECT_FALSE(optimizer.last_report().non_finite.has_value());
  EXPECT_EQ(optimizer.last_report().window, 1u);
  clean.step(clean_window, clean_optimizer);
  EXPECT_TRUE(same(snapshot(run.set, optimizer), snapshot(clean.set, clean_optimizer)));
}

}  // namespace
}  // namespace gradfuse::test
