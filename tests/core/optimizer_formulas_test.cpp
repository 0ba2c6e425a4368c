// Adam, AdamW and SGD against the formulas of torch.optim in FP64, over ten steps, and against numbers that torch gave.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <variant>

#include "tests/core/torch_formulas.hpp"
#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using Options = std::variant<AdamWOptions, AdamOptions, SgdOptions>;
struct Case {
  std::string name;
  Options options;
  std::int64_t steps_before = 0;  // set_step_count
};

std::unique_ptr<Optimizer> make_optimizer(const ParameterSet& params, const Options& options) {
  if (const auto* o = std::get_if<AdamWOptions>(&options)) return std::make_unique<AdamW>(params, *o);
  if (const auto* o = std::get_if<AdamOptions>(&options)) return std::make_unique<Adam>(params, *o);
  return std::make_unique<Sgd>(params, std::get<SgdOptions>(options));
}
double lr_of(const Options& options) {
  return std::visit([](const auto& o) { return o.lr; }, options);
}

std::vector<Case> cases() {
  using W = AdamWOptions;
  using A = AdamOptions;
  using S = SgdOptions;
  return {
      {"AdamW", W{.lr = 0.01}},
      {"AdamW without decay", W{.lr = 0.01, .weight_decay = 0.0}},
      {"AdamW with decay 0.3", W{.lr = 0.01, .weight_decay = 0.3}},
      {"AdamW with negative decay", W{.lr = 0.01, .weight_decay = -0.3}},
      {"AdamW at step a million", W{.lr = 0.01}, 1000000},
      {"AdamW without bias correction", W{.lr = 0.01, .bias_correction = false}},
      {"AdamW with beta1 0", W{.lr = 0.01, .beta1 = 0.0}},
      {"AdamW with beta2 0", W{.lr = 0.01, .beta2 = 0.0}},
      {"AdamW with both betas 0", W{.lr = 0.01, .beta1 = 0.0, .beta2 = 0.0}},
      {"AdamW with large eps", W{.lr = 0.01, .eps = 0.5}},
      {"AdamW with lr 1 and small betas", W{.lr = 1.0, .beta1 = 0.1, .beta2 = 0.25}},
      {"AdamW amsgrad", W{.lr = 0.01, .beta2 = 0.5, .amsgrad = true}},
      {"AdamW maximize", W{.lr = 0.01, .weight_decay = 0.3, .maximize = true}},
      {"Adam", A{.lr = 0.01}},
      {"Adam with decay 0.1", A{.lr = 0.01, .weight_decay = 0.1}},
      {"Adam with negative decay", A{.lr = 0.01, .weight_decay = -0.1}},
      {"Adam amsgrad maximize with decay", A{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true, .maximize = true}},
      {"Adam at step a million with large eps", A{.lr = 0.01, .eps = 0.5, .weight_decay = 0.1}, 1000000},
      {"Adam with lr 1 and small betas", A{.lr = 1.0, .beta1 = 0.1, .beta2 = 0.25}},
      {"SGD", S{.lr = 0.01}},
      {"SGD with decay", S{.lr = 0.01, .weight_decay = 0.1}},
      {"SGD with negative decay, maximize", S{.lr = 0.01, .weight_decay = -0.1, .maximize = true}},
      {"SGD with momentum", S{.lr = 0.01, .momentum = 0.9}},
      {"SGD with momentum and dampening", S{.lr = 0.01, .momentum = 0.9, .dampening = 0.5}},
      {"SGD with momentum, dampening and decay", S{.lr = 0.01, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.1}},
      {"SGD nesterov", S{.lr = 0.01, .momentum = 0.9, .nesterov = true}},
      {"SGD nesterov, decay, maximize",
       S{.lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .maximize = true}},
  };
}

using FormulasOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, FormulasOn, testing::ValuesIn(all_machines()), machine_name);

TEST_P(FormulasOn, TenStepsAgreeWithTorchsFormulasInFloat64) {
  constexpr std::size_t kNumel = 133;
  constexpr int kSteps = 10;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Random random(7);
    OwnedSet set(backend);
    set.add(moderate_tensor(random, DType::kFloat32, kNumel));
    std::vector<TorchElement> torch(kNumel);
    for (std::size_t i = 0; i < kNumel; ++i) torch[i] = {.p = set.param[0].get(i), .step = c.steps_before};
    Window window(set.params);
    const auto optimizer = make_optimizer(set.params, c.options);
    optimizer->set_step_count(0, c.steps_before);
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<HostTensor> grads{moderate_tensor(random, DType::kFloat32, kNumel)};
      step_on(window, *optimizer, grads);
      for (std::size_t i = 0; i < kNumel; ++i) {
        std::visit([&](const auto& o) { torch_step(torch[i], grads[0].get(i), o); }, c.options);
      }
    }
    // With u = 2^-24 and gradients in [0.5, 2]: a step rounds the decay factor, its product and the sum, at most 4u of
    // |p|. exp_avg collects at most 2.5u a step, over a bias correction of 0.1 a step: 25u; over a denominator of at
    // least 0.5: 50u; the denominator's own roundings, 10u of a quotient of at most 4, and the step size make it 128u
    // of lr. A momentum buffer of at most 20, with 4u a step of its own, stays below that. |p| is below 2 + 4 lr a
    // step.
    const double lr = lr_of(c.options), largest = 2.0 + 4.0 * kSteps * lr;
    const double bound = kSteps * 0x1p-24 * (4.0 * largest + 128.0 * lr);
    for (std::size_t i = 0; i < kNumel; ++i) {
      ASSERT_LE(std::fabs(set.param[0].get(i) - torch[i].p), bound) << "element " << i;
    }
    EXPECT_EQ(optimizer->step_count(0), c.steps_before + kSteps);
  }
}

struct Golden {
  std::string name;
  Options options;
  double after[3];
};

TEST_P(FormulasOn, TheSequencesThatTorchGaveComeOut) {
  // torch 2.15 in FP32: p = 1, g = 1, -0.5, 2 (torch-contract.md, section 1.3), printed to 8 places.
  const Golden sequences[] = {
      {"AdamW", AdamWOptions{.lr = 0.1}, {0.89900005, 0.87146735, 0.80478472}},
      {"AdamW maximize", AdamWOptions{.lr = 0.1, .maximize = true}, {1.09899998, 1.12453473, 1.18922138}},
      {"Adam", AdamOptions{.lr = 0.1, .weight_decay = 0.1}, {0.89999998, 0.86321831, 0.79359984}},
      {"SGD momentum", SgdOptions{.lr = 0.1, .momentum = 0.9}, {0.89999998, 0.85999995, 0.62399995}},
      {"SGD dampening", SgdOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, {0.89999998, 0.83499998, 0.67649996}},
      {"SGD nesterov",
       SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
       {0.80809999, 0.81975460, 0.40441349}}};
  for (const Golden& golden : sequences) {
    SCOPED_TRACE(golden.name);
    OwnedSet set(backend);
    set.add(tensor_of(DType::kFloat32, {1.0}));
    Window window(set.params);
    const auto optimizer = make_optimizer(set.params, golden.options);
    const double grads[] = {1.0, -0.5, 2.0};
    for (int step = 0; step < 3; ++step) {
      step_on(window, *optimizer, {tensor_of(DType::kFloat32, {grads[step]})});
      // torch rounds each operation where the library fuses some: about four roundings a step of values below 2.
      EXPECT_LE(std::fabs(set.param[0].get(0) - golden.after[step]), (step + 1) * 4 * 0x1p-24) << "step " << step;
    }
  }
}

TEST_P(FormulasOn, StatesHaveTorchsNamesAndValues) {
  OwnedSet set(backend);
  set.add(tensor_of(DType::kFloat32, {1.0}));
  Window window(set.params);
  AdamW adam(set.params, {.lr = 0.1, .amsgrad = true});
  Sgd sgd(set.params, {.momentum = 0.9}), plain(set.params);
  for (const double grad : {1.0, -0.5, 2.0}) {
    for (Optimizer* optimizer : {static_cast<Optimizer*>(&adam), static_cast<Optimizer*>(&sgd)}) {
      step_on(window, *optimizer, {tensor_of(DType::kFloat32, {grad})});
    }
  }
  const std::vector<OptimizerState> states = adam.state(0);
  ASSERT_EQ(states.size(), 3u);
  EXPECT_EQ(states[0].name, "exp_avg");
  EXPECT_EQ(states[1].name, "exp_avg_sq");
  EXPECT_EQ(states[2].name, "max_exp_avg_sq");
  EXPECT_LE(std::fabs(copy_of(states[0].view).get(0) - 0.236), 8 * 0x1p-24 * 0.236);
  EXPECT_LE(std::fabs(copy_of(states[1].view).get(0) - 0.00524775), 8 * 0x1p-24 * 0.0053);
  ASSERT_EQ(sgd.state(0).size(), 1u);
  EXPECT_EQ(sgd.state(0)[0].name, "momentum_buffer");
  EXPECT_LE(std::fabs(copy_of(sgd.state(0)[0].view).get(0) - 2.36), 8 * 0x1p-24 * 2.36);
  EXPECT_TRUE(plain.state(0).empty());
}

TEST_P(FormulasOn, NoGradientAndNoSecondMomentMoveNothing) {
  OwnedSet set(backend);
  set.add(tensor_of(DType::kFloat32, std::vector<double>(37, 1.0)));
  const HostTensor before = set.param[0];
  Window window(set.params);
  AdamW adamw(set.params, {.weight_decay = 0.0});
  Adam adam(set.params);
  Sgd sgd(set.params, {.momentum = 0.9});
  for (Optimizer* optimizer :
       {static_cast<Optimizer*>(&adamw), static_cast<Optimizer*>(&adam), static_cast<Optimizer*>(&sgd)}) {
    for (int step = 0; step < 3; ++step) step_on(window, *optimizer, set.zero_grads());
    EXPECT_TRUE(same_bits(set.param[0], before)) << "0 / (sqrt(0) + eps) is 0";
    EXPECT_EQ(optimizer->step_count(0), 3);
  }
}

TEST_P(FormulasOn, TheSecondMomentOfSmallGradientsDoesNotUnderflow) {
  // Apex keeps moments in the parameter's type: with FP16, v is 0 for |g| <= 1e-3, and a step is 32 times too large.
  OwnedSet set(backend);
  set.add(tensor_of(DType::kFloat32, std::vector<double>(20, 1.0)), DType::kFloat16);
  Window window(set.params);
  Adam optimizer(set.params, {.lr = 1e-3});
  std::vector<HostTensor> grads = set.zero_grads(DType::kFloat16);
  grads[0].fill(1e-3);
  for (int step = 0; step < 10; ++step) step_on(window, optimizer, grads);
  EXPECT_GT(copy_of(optimizer.state(0)[1].view).get(0), 0.0);
  EXPECT_LE(std::fabs(set.param[0].get(19) - (1.0 - 10 * 1e-3)), 1e-6) << "a steady gradient moves by lr a step";
}

}  // namespace
}  // namespace gradfuse::test
