// Saved after some steps and loaded into new objects, training goes on with the bits of a run that was not interrupted.
#include <cstring>
#include <limits>
#include <memory>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using ResumeOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, ResumeOn, testing::ValuesIn(all_machines()), machine_name);

using MakeOptimizer = std::unique_ptr<Optimizer> (*)(const ParameterSet&);
constexpr MakeOptimizer kMakers[] = {
    [](const ParameterSet& params) -> std::unique_ptr<Optimizer> {
      return std::make_unique<AdamW>(params, AdamWOptions{.lr = 0.05, .amsgrad = true});
    },
    [](const ParameterSet& params) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Adam>(params, AdamOptions{.lr = 0.05, .weight_decay = 0.1});
    },
    [](const ParameterSet& params) -> std::unique_ptr<Optimizer> {
      return std::make_unique<Sgd>(params, SgdOptions{.lr = 0.05, .momentum = 0.9, .dampening = 0.5});
    }};

struct TrainingRun {
  TrainingRun(std::shared_ptr<const Backend> backend, MakeOptimizer make, const std::vector<HostTensor>& masters)
      : set(std::move(backend)) {
    for (const HostTensor& master : masters) set.add(master, DType::kBFloat16);
    window.emplace(set.params, WindowOptions{.steps = 2});
    optimizer = make(set.params);
  }
  /// One window; that of step 3 overflows. Tensor 1 has no gradient in the first two, so step counts differ.
  void train(std::uint64_t step) {
    Random random(100 + step);
    std::vector<std::vector<HostTensor>> grads(2);
    for (auto& micro_batch : grads) {
      for (const HostTensor& param : set.param)
        micro_batch.push_back(moderate_tensor(random, DType::kFloat16, param.numel()));
      if (step == 3) micro_batch[0].set(0, std::numeric_limits<double>::infinity());
      std::vector<ConstTensorView> views = views_of(micro_batch);
      if (step < 2) views[1] = {};
      window->add(views);
    }
    optimizer->step(*window, {.max_grad_norm = 1.0, .scaler = &scaler});
  }

  OwnedSet set;
  std::optional<Window> window;
  std::unique_ptr<Optimizer> optimizer;
  LossScaler scaler{{.init_scale = 8.0, .growth_interval = 2}};
};

TEST_P(ResumeOn, FromStatesStepCountsAndScalerGivesTheSameBits) {
  for (const MakeOptimizer make : kMakers) {
    for (const std::uint64_t saved_after : {0, 1, 3, 4, 5}) {
      Random random(1);
      const std::vector<HostTensor> masters{moderate_tensor(random, DType::kFloat32, 4200),
                                            moderate_tensor(random, DType::kFloat32, 17)};
      TrainingRun through(backend, make, masters), before(backend, make, masters);
      for (std::uint64_t step = 0; step < 8; ++step) through.train(step);
      for (std::uint64_t step = 0; step < saved_after; ++step) before.train(step);

      TrainingRun after(backend, make, before.set.param);
      for (std::size_t t = 0; t < masters.size(); ++t) {
        copy_tensor(after.set.model[t].view(), before.set.model[t].view());
        const auto saved = before.optimizer->state(t), loaded = after.optimizer->state(t);
        ASSERT_EQ(saved.size(), loaded.size());
        for (std::size_t s = 0; s < saved.size(); ++s) {
          ASSERT_EQ(saved[s].name, loaded[s].name);
          copy_tensor(loaded[s].view, saved[s].view);
        }
        after.optimizer->set_step_count(t, before.optimizer->step_count(t));
      }
      after.scaler.load(before.scaler.state());
      for (std::uint64_t step = saved_after; step < 8; ++step) after.train(step);
      EXPECT_TRUE(same(snapshot(after.set, *after.optimizer), snapshot(through.set, *through.optimizer)))
          << "saved after " << saved_after;
      EXPECT_EQ(after.scaler.scale(), through.scaler.scale());
      EXPECT_EQ(after.scaler.state().growth_tracker, through.scaler.state().growth_tracker);
    }
  }
}

TEST_P(ResumeOn, InTheMiddleOfAWindowFromTheAccumulator) {
  Random random(2);
  const std::vector<HostTensor> masters{moderate_tensor(random, DType::kFloat32, 4200)};
  const auto grad = [&](std::uint64_t seed) {
    Random of_grad(seed);
    return moderate_tensor(of_grad, DType::kFloat16, 4200);
  };
  const std::vector<HostTensor> grads{grad(1), grad(2), grad(3)};
  TrainingRun through(backend, kMakers[0], masters), before(backend, kMakers[0], masters),
      after(backend, kMakers[0], masters);
  Window full(through.set.params, {.steps = 3}), saved(before.set.params, {.steps = 3}),
      loaded(after.set.params, {.steps = 3});
  for (const HostTensor& g : grads) full.add(std::vector<ConstTensorView>{g.view()}, {.weight = 2.0});
  for (int b = 0; b < 2; ++b) saved.add(std::vector<ConstTensorView>{grads[b].view()}, {.weight = 2.0});
  // What was saved is written back as a producer's result; the counts of the saved micro-batches come with it.
  const AccumulatorSlot slot = loaded.claim(0);
  copy_tensor(slot.view, saved.accumulator(0));
  loaded.add(std::vector<Gradient>{}, {.count = saved.total_count()});
  loaded.add(std::vector<ConstTensorView>{grads[2].view()}, {.weight = 2.0, .is_last = true});
  through.optimizer->step(full);
  after.optimizer->step(loaded);
  EXPECT_EQ(after.optimizer->last_report().norm, through.optimizer->last_report().norm);
  EXPECT_EQ(after.optimizer->last_report().total_count, 6.0);
  EXPECT_TRUE(same(snapshot(after.set, *after.optimizer), snapshot(through.set, *through.optimizer)));
}

TEST(Resume, AnOptimizerAndAWindowMayBeMoved) {
  OwnedSet set;
  set.add(tensor_of(DType::kFloat32, {0.0}));
  Window window(set.params, {.steps = 2});
  Sgd optimizer(set.params, {.lr = 1.0});
  const HostTensor one = tensor_of(DType::kFloat32, {1.0}), three = tensor_of(DType::kFloat32, {3.0});
  window.add(std::vector<ConstTensorView>{one.view()});
  Window moved_window = std::move(window);
  Sgd moved = std::move(optimizer);
  moved_window.add(std::vector<ConstTensorView>{three.view()});
  moved.step(moved_window);
  EXPECT_EQ(set.param[0].get(0), -2.0);
}

}  // namespace
}  // namespace gradfuse::test
