// Tensors that do not take part in every micro-batch, join late, or get several gradients in one.
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using WindowTensorsOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, WindowTensorsOn, testing::ValuesIn(all_machines()), machine_name);

HostTensor filled(double value, std::size_t numel = 4100) {
  return tensor_of(DType::kFloat32, std::vector<double>(numel, value));
}
double sgd_value(const OwnedSet& set, std::size_t tensor) {  // lr 1, from zero, total 1: minus the gradient, exactly
  for (std::size_t i = 0; i < set.param[tensor].numel(); ++i) {
    if (set.param[tensor].get(i) != set.param[tensor].get(0)) return std::nan("");
  }
  return -set.param[tensor].get(0);
}

TEST_P(WindowTensorsOn, ATensorWithoutGradientsInSomeMicroBatchesSumsTheOthers) {
  // Bit b of the tensor's index: whether it has a gradient in micro-batch b. The last stays pending.
  OwnedSet set(backend);
  for (int t = 0; t < 8; ++t) set.add(filled(0.0));
  Window window(set.params, {.steps = 3, .fixed_total = 1.0});
  Sgd optimizer(set.params, {.lr = 1.0});
  const HostTensor grads[] = {filled(1.0), filled(2.0), filled(4.0)};
  for (std::size_t b = 0; b < 3; ++b) {
    std::vector<ConstTensorView> views(8);
    for (std::size_t t = 0; t < 8; ++t) {
      if (t >> b & 1) views[t] = grads[b].view();
    }
    window.add(views);
  }
  optimizer.step(window);
  for (std::size_t t = 0; t < 8; ++t) {
    EXPECT_EQ(sgd_value(set, t), static_cast<double>(t)) << "tensor " << t;
    EXPECT_EQ(optimizer.step_count(t), t == 0 ? 0 : 1) << "tensor " << t;
  }
}

TEST_P(WindowTensorsOn, ATensorWithoutAnyGradientIsLeftUntouchedByDecayMomentumAndModelCopy) {
  Random random(1);
  OwnedSet set(backend);
  for (int t = 0; t < 3; ++t) set.add(moderate_tensor(random, DType::kFloat32, 4100), DType::kBFloat16);
  Window window(set.params);
  AdamW adamw(set.params, {.lr = 0.1, .weight_decay = 0.5});
  Sgd sgd(set.params, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5});
  const std::vector<HostTensor> grads{filled(1.0), filled(2.0), filled(3.0)};
  for (Optimizer* optimizer : {static_cast<Optimizer*>(&adamw), static_cast<Optimizer*>(&sgd)}) {
    step_on(window, *optimizer, grads);
    const Snapshot before = snapshot(set, *optimizer);
    window.add(std::vector<ConstTensorView>{grads[0].view(), {}, grads[2].view()});
    optimizer->step(window);
    const Snapshot after = snapshot(set, *optimizer);
    EXPECT_EQ(after.step_counts, (std::vector<std::int64_t>{2, 1, 2}));
    for (std::size_t i = 0; i < after.tensors.size(); ++i) {
      const bool is_untouched = after.names[i].back() == '1';
      EXPECT_EQ(static_cast<bool>(same_bits(after.tensors[i], before.tensors[i])), is_untouched) << after.names[i];
    }
  }
}

TEST_P(WindowTensorsOn, AGradientOfZerosStepsAndDecaysWhereNoGradientDoesNot) {
  OwnedSet set(backend);  // as torch: 1.0 -> 0.999 -> 0.998001 with a learning rate of 0.1
  set.add(filled(1.0));
  Window window(set.params);
  AdamW optimizer(set.params, {.lr = 0.1});
  step_on(window, optimizer, set.zero_grads());
  step_on(window, optimizer, set.zero_grads());
  // decay is 0.999 rounded, then each product is: 4 roundings
  EXPECT_LE(std::fabs(set.param[0].get(4099) - 0.998001), 4 * 0x1p-24);
  EXPECT_EQ(optimizer.step_count(0), 2);
}

TEST_P(WindowTensorsOn, ATensorMayJoinInTheMiddleOfAWindow) {
  OwnedSet set(backend);
  set.add(filled(0.0));
  Window window(set.params, {.steps = 3, .fixed_total = 1.0});
  Sgd optimizer(set.params, {.lr = 1.0});
  const HostTensor one = filled(1.0), two = filled(2.0), four = filled(4.0);
  window.add(std::vector<ConstTensorView>{one.view()});
  set.add(filled(0.0));
  window.add(std::vector<ConstTensorView>{two.view(), two.view()});
  set.add(filled(0.0));
  window.add(std::vector<ConstTensorView>{four.view(), four.view(), four.view()});
  set.add(filled(0.0));  // after the last micro-batch, before the step: it has no gradient in this window
  optimizer.step(window);
  EXPECT_EQ(sgd_value(set, 0), 7.0);
  EXPECT_EQ(sgd_value(set, 1), 6.0);
  EXPECT_EQ(sgd_value(set, 2), 4.0);
  EXPECT_EQ(sgd_value(set, 3), 0.0);
  EXPECT_EQ(optimizer.step_count(3), 0);
  EXPECT_EQ(optimizer.last_report().norm, std::sqrt(4100.0 * (49.0 + 36.0 + 16.0)));
}

std::vector<Gradient> tied(std::initializer_list<std::pair<std::size_t, const HostTensor*>> gradients) {
  std::vector<Gradient> list;
  for (const auto& [tensor, grad] : gradients) list.push_back({tensor, grad->view()});
  return list;
}

TEST_P(WindowTensorsOn, ATiedWeightGetsTheSumOfItsProducersInEveryMicroBatch) {
  const HostTensor one = filled(1.0), two = filled(2.0), four = filled(4.0), eight = filled(8.0);
  for (std::size_t steps = 1; steps <= 3; ++steps) {
    for (std::size_t where = 0; where < steps; ++where) {  // which micro-batch has two producers for tensor 1
      SCOPED_TRACE(testing::Message() << "micro-batch " << where << " of " << steps);
      OwnedSet set(backend);
      for (int t = 0; t < 3; ++t) set.add(filled(0.0));
      Window window(set.params, {.steps = steps, .fixed_total = 1.0});
      Sgd optimizer(set.params, {.lr = 1.0});
      for (std::size_t b = 0; b < steps; ++b) {
        if (b == where) {
          window.add(tied({{0, &one}, {1, &two}, {1, &four}, {2, &eight}}), {.weight = 16.0});
        } else {
          window.add(tied({{2, &one}, {1, &one}}));
        }
      }
      optimizer.step(window);
      const double others = static_cast<double>(steps) - 1.0;
      EXPECT_EQ(sgd_value(set, 0), 16.0);
      EXPECT_EQ(sgd_value(set, 1), 96.0 + others);
      EXPECT_EQ(sgd_value(set, 2), 128.0 + others);
      EXPECT_EQ(optimizer.step_count(1), 1);
    }
  }
}

TEST_P(WindowTensorsOn, ThreeProducersInAnyOrderAddUp) {
  const HostTensor one = filled(1.0), two = filled(2.0), four = filled(4.0), eight = filled(8.0);
  for (const auto& list :
       {tied({{1, &one}, {1, &two}, {1, &four}, {0, &eight}}), tied({{0, &eight}, {1, &four}, {1, &one}, {1, &two}}),
        tied({{1, &two}, {0, &eight}, {1, &one}, {1, &four}}),
        tied({{1, &four}, {0, &two}, {1, &one}, {0, &four}, {1, &two}, {0, &two}})}) {
    for (const std::size_t steps : {1, 2}) {
      OwnedSet set(backend);
      for (int t = 0; t < 2; ++t) set.add(filled(0.0));
      Window window(set.params, {.steps = steps, .fixed_total = 1.0});
      Sgd optimizer(set.params, {.lr = 1.0});
      for (std::size_t b = 0; b < steps; ++b) window.add(list);
      optimizer.step(window);
      EXPECT_EQ(sgd_value(set, 0), 8.0 * static_cast<double>(steps));
      EXPECT_EQ(sgd_value(set, 1), 7.0 * static_cast<double>(steps));
    }
  }
}

TEST_P(WindowTensorsOn, AListMayMixWithWholeMicroBatchesAndHoldAbsentViews) {
  OwnedSet set(backend);
  for (int t = 0; t < 3; ++t) set.add(filled(0.0));
  Window window(set.params, {.steps = 4, .fixed_total = 1.0});
  Sgd optimizer(set.params, {.lr = 1.0});
  const HostTensor one = filled(1.0), two = filled(2.0), nan = filled(std::nan(""));
  window.add(std::vector<ConstTensorView>{one.view(), one.view(), {}});
  window.add(std::vector<Gradient>{{2, two.view()}, {1, {}}, {2, {}}});
  window.add(std::vector<Gradient>{});
  window.add(std::vector<Gradient>{{0, nan.view()}, {0, nan.view()}}, {.weight = 0.0});
  optimizer.step(window);
  EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kApplied);
  for (const auto& [tensor, value] : {std::pair{0, 1.0}, {1, 1.0}, {2, 2.0}}) {
    EXPECT_EQ(sgd_value(set, static_cast<std::size_t>(tensor)), value) << tensor;
  }
}

TEST_P(WindowTensorsOn, GradientsMayBeFoldedAsTheyComeAndTheirMemoryUsedAgain) {
  OwnedSet set(backend);
  for (int t = 0; t < 3; ++t) set.add(filled(0.0));
  Window window(set.params, {.steps = 2, .fixed_total = 1.0});
  Sgd optimizer(set.params, {.lr = 1.0});
  HostTensor scratch = filled(0.0);
  const auto refill = [&](double value) { copy_tensor(scratch.view(), filled(value).view()); };
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    for (const std::size_t tensor : {2u, 1u, 2u}) {  // tensor 2 has two producers
      refill(static_cast<double>(tensor));
      window.fold(std::vector<Gradient>{{tensor, scratch.view()}}, 4.0);
      EXPECT_THAT([&] { optimizer.step(window); }, throws_saying("micro-batch")) << "it was not ended";
    }
    refill(std::nan(""));
    window.add(std::vector<Gradient>{});
  }
  EXPECT_THAT([&] { window.fold({}); }, throws_saying("the window is full"));
  optimizer.step(window);
  EXPECT_EQ(sgd_value(set, 0), 0.0);
  EXPECT_EQ(sgd_value(set, 1), 8.0);
  EXPECT_EQ(sgd_value(set, 2), 32.0);
  EXPECT_EQ(optimizer.step_count(0), 0);
  refill(std::numeric_limits<double>::infinity());
  window.fold(std::vector<Gradient>{{1, scratch.view()}});
  window.add(std::vector<Gradient>{});
  optimizer.step(window);
  ASSERT_TRUE(optimizer.last_report().non_finite.has_value());
  EXPECT_EQ(optimizer.last_report().non_finite->tensor, 1u);
  EXPECT_EQ(optimizer.last_report().non_finite->micro_batch, 0u);
}

TEST_P(WindowTensorsOn, AnAbsentViewIsAbsentWhateverItsTypeSays) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64, static_cast<DType>(9)}) {
    OwnedSet set(backend);
    set.add(filled(0.0));
    Window window(set.params, {.steps = 2, .fixed_total = 1.0});
    Sgd optimizer(set.params, {.lr = 1.0});
    const HostTensor one = filled(1.0);
    window.add(std::vector<ConstTensorView>{one.view()});
    window.add(std::vector<ConstTensorView>{{nullptr, 0, dtype}});
    optimizer.step(window);
    EXPECT_EQ(sgd_value(set, 0), 1.0) << "dtype " << static_cast<int>(dtype);
    EXPECT_EQ(optimizer.last_report().norm, std::sqrt(4100.0));
  }
}

TEST_P(WindowTensorsOn, AWindowOfNoTensorsIsNoWork) {
  OwnedSet set(backend);
  Window window(set.params, {.steps = 2});
  AdamW optimizer(set.params);
  window.add(std::vector<ConstTensorView>{});
  window.add(std::vector<Gradient>{});
  optimizer.step(window, {.max_grad_norm = 1.0});
  EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kApplied);
  EXPECT_EQ(optimizer.last_report().norm, 0.0);
}

}  // namespace
}  // namespace gradfuse::test
