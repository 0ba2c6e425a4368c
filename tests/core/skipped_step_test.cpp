// A step that is skipped leaves everything as it was, bit for bit, and the next one goes on as if it had not been.
#include <cmath>
#include <limits>
#include <memory>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using SkippedStepOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, SkippedStepOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::unique_ptr<Optimizer>> every_optimizer(const ParameterSet& params) {
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  optimizers.push_back(std::make_unique<AdamW>(params, AdamWOptions{.lr = 0.1, .amsgrad = true}));
  optimizers.push_back(std::make_unique<Adam>(params, AdamOptions{.lr = 0.1, .weight_decay = 0.1}));
  optimizers.push_back(std::make_unique<Sgd>(params, SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}));
  optimizers.push_back(std::make_unique<Sgd>(params, SgdOptions{.lr = 0.1, .weight_decay = 0.1}));
  return optimizers;
}

void add_tensors(OwnedSet& set, Random& random) {
  set.add(moderate_tensor(random, DType::kFloat32, 4500), DType::kFloat16);
  set.add(moderate_tensor(random, DType::kFloat32, 33), DType::kBFloat16);
  set.add(moderate_tensor(random, DType::kFloat32, 1));
}
std::vector<HostTensor> random_grads(const OwnedSet& set, Random& random) {
  std::vector<HostTensor> grads;
  for (const HostTensor& param : set.param) grads.push_back(moderate_tensor(random, DType::kFloat16, param.numel()));
  return grads;
}

TEST_P(SkippedStepOn, ChangesNothingAtTheFirstStepNorLater) {
  for (std::size_t which = 0; which < 4; ++which) {
    for (const int steps_before : {0, 1, 3}) {
      for (const double value : {kInf, -kInf, kNan}) {
        SCOPED_TRACE(testing::Message() << "optimizer " << which << " after " << steps_before << " steps, " << value);
        Random random(1);
        OwnedSet set(backend);
        add_tensors(set, random);
        Window window(set.params);
        const auto optimizer = std::move(every_optimizer(set.params)[which]);
        for (int step = 0; step < steps_before; ++step) step_on(window, *optimizer, random_grads(set, random));
        const Snapshot before = snapshot(set, *optimizer);
        std::vector<HostTensor> grads = random_grads(set, random);
        grads[1].set(32, value);
        const StepReport report = step_on(window, *optimizer, grads, {.max_grad_norm = 1.0});
        EXPECT_EQ(report.outcome, StepOutcome::kNonFinite);
        EXPECT_TRUE(report.is_skipped());
        EXPECT_FALSE(std::isfinite(report.norm));
        EXPECT_TRUE(same(snapshot(set, *optimizer), before));
        EXPECT_TRUE(set.param[0].guards_are_intact() && set.model[0].guards_are_intact());
      }
    }
  }
}

TEST_P(SkippedStepOn, LeavesNoTraceInWhatFollows) {
  // Among them SGD with momentum after an overflow of the very first step, where torch's fused one reads memory that
  // nobody wrote, and Apex and TransformerEngine have counted the step (defects 3 and 8).
  for (std::size_t which = 0; which < 4; ++which) {
    for (const int bad_step : {0, 2}) {
      SCOPED_TRACE(testing::Message() << "optimizer " << which << ", overflow at step " << bad_step);
      Random random(2), same_random(2);
      OwnedSet set(backend), clean(backend);
      add_tensors(set, random);
      add_tensors(clean, same_random);
      Window window(set.params, {.steps = 2}), clean_window(clean.params, {.steps = 2});
      const auto optimizer = std::move(every_optimizer(set.params)[which]);
      const auto clean_optimizer = std::move(every_optimizer(clean.params)[which]);
      for (int step = 0; step < 4; ++step) {
        const std::vector<HostTensor> grads = random_grads(clean, random);
        if (step == bad_step) {
          std::vector<HostTensor> bad = grads;
          bad[0].set(4499, kInf);
          window.add(views_of(bad));
          window.add(views_of(grads));
          optimizer->step(window);
          EXPECT_TRUE(optimizer->last_report().is_skipped());
        }
        step_on(window, *optimizer, grads);
        step_on(clean_window, *clean_optimizer, grads);
      }
      EXPECT_TRUE(same(snapshot(set, *optimizer), snapshot(clean, *clean_optimizer)));
      EXPECT_EQ(optimizer->last_report().window, 4u) << "a skipped window counts";
    }
  }
}

TEST_P(SkippedStepOn, IsDecidedForAllTensorsAlike) {
  // One bad tensor holds back the others of its set, whichever group they are in.
  OwnedSet set(backend);
  for (std::size_t t = 0; t < 4; ++t) set.add(tensor_of(DType::kFloat32, {1.0}), std::nullopt, t);
  Window window(set.params);
  AdamW optimizer(set.params);
  for (std::size_t bad = 0; bad < 4; ++bad) {
    std::vector<HostTensor> grads = set.zero_grads();
    for (HostTensor& grad : grads) grad.fill(1.0);
    grads[bad].fill(kNan);
    step_on(window, optimizer, grads);
    for (std::size_t t = 0; t < 4; ++t) {
      EXPECT_EQ(optimizer.step_count(t), 0);
      EXPECT_EQ(set.param[t].get(0), 1.0);
    }
  }
}

}  // namespace
}  // namespace gradfuse::test
