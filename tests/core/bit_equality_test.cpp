// The promise of the library: every SIMD target and thread count gives the bits of the reference, over random shapes,
// alignments, dtypes and options, through several windows.
#include <fmt/format.h>

#include <cmath>

#include "kernels/element/scalar.hpp"
#include "tests/core/reference.hpp"
#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using BitEqualityOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, BitEqualityOn, testing::ValuesIn(all_machines()), machine_name);

std::size_t random_numel(Random& random) {
  constexpr std::size_t kEdges[] = {0,   1,   3,   7,   15,   16,   17,   63,   64,  65,
                                    255, 256, 257, 511, 1023, 1025, 4095, 4096, 4097};
  switch (uniform(random, 0, 3)) {
    case 0: return static_cast<std::size_t>(uniform(random, 0, 9000));
    case 1: return static_cast<std::size_t>(uniform(random, 0, 300));
    default: return kEdges[uniform(random, 0, std::size(kEdges) - 1)];
  }
}
bool one_in(Random& random, int n) { return uniform(random, 1, n) == 1; }

ReferenceTrainer::Options random_options(Random& random) {
  const double decay = one_in(random, 2) ? 0.0 : one_in(random, 2) ? 0.1 : -0.01;
  const bool maximize = one_in(random, 4), amsgrad = one_in(random, 3);
  const double beta1 = one_in(random, 4) ? 0.0 : 0.9, beta2 = one_in(random, 4) ? 0.0 : 0.99;
  switch (uniform(random, 0, 2)) {
    case 0:
      return AdamWOptions{.lr = 0.01,
                          .beta1 = beta1,
                          .beta2 = beta2,
                          .weight_decay = decay,
                          .amsgrad = amsgrad,
                          .maximize = maximize,
                          .bias_correction = !one_in(random, 4)};
    case 1:
      return AdamOptions{
          .lr = 0.01, .beta1 = beta1, .beta2 = beta2, .weight_decay = decay, .amsgrad = amsgrad, .maximize = maximize};
    default: {
      const bool nesterov = one_in(random, 3);
      const double momentum = nesterov || one_in(random, 2) ? 0.9 : 0.0;
      return SgdOptions{.lr = 0.01,
                        .momentum = momentum,
                        .dampening = nesterov || one_in(random, 2) ? 0.0 : 0.3,
                        .weight_decay = decay,
                        .nesterov = nesterov,
                        .maximize = maximize};
    }
  }
}

std::unique_ptr<Optimizer> make_optimizer(const ParameterSet& params, const ReferenceTrainer::Options& options) {
  return std::visit(
      [&]<class O>(const O& o) -> std::unique_ptr<Optimizer> {
        if constexpr (std::is_same_v<O, AdamWOptions>) return std::make_unique<AdamW>(params, o);
        if constexpr (std::is_same_v<O, AdamOptions>) return std::make_unique<Adam>(params, o);
        if constexpr (std::is_same_v<O, SgdOptions>) return std::make_unique<Sgd>(params, o);
      },
      options);
}

/// A random training run, on the library and on the reference side by side.
struct RandomRun {
  RandomRun(std::uint64_t seed, const Machine& machine) : random(seed), params(machine.backend()) {
    const auto num_tensors = static_cast<std::size_t>(uniform(random, 1, 6));
    for (std::size_t t = 0; t < num_tensors; ++t) {
      const auto off = static_cast<std::size_t>(uniform(random, 0, 5));
      param.push_back(random_tensor(random, DType::kFloat32, random_numel(random), off));
      const DType model_dtype = one_in(random, 2) ? DType::kFloat16 : DType::kBFloat16;
      const bool has_model = param[t].numel() > 0 && !one_in(random, 3);
      model.push_back(has_model ? HostTensor(model_dtype, param[t].numel(), off + 1) : HostTensor());
      params.add({.name = fmt::format("t{}", t),
                  .param = param[t].view(),
                  .model = has_model ? model[t].view() : TensorView{}});
      reference.add_tensor(param[t], model_dtype, has_model);
    }
  }

  void window(Window& window, Optimizer& optimizer) {
    const auto micro_batches = static_cast<std::size_t>(uniform(random, 1, 4));
    std::vector<std::vector<HostTensor>> grads(micro_batches);  // the last stays pending until the step
    for (std::size_t b = 0; b < micro_batches; ++b) {
      std::vector<ConstTensorView> views;
      std::vector<const HostTensor*> pointers;
      grads[b].reserve(param.size());
      for (const HostTensor& p : param) {
        const DType dtype = kGradDTypes[uniform(random, 0, 3)];
        grads[b].push_back(random_tensor(random, dtype, p.numel(), static_cast<std::size_t>(uniform(random, 0, 5))));
        const bool is_absent = one_in(random, 5);
        views.push_back(is_absent || p.numel() == 0 ? ConstTensorView{} : grads[b].back().view());
        pointers.push_back(is_absent || p.numel() == 0 ? nullptr : &grads[b].back());
      }
      const double weight = one_in(random, 3) ? 1.0 : static_cast<double>(uniform(random, 0, 99));
      const double count = one_in(random, 3) ? weight + 1.0 : weight;
      window.add(views, {.weight = weight, .count = count, .is_last = b + 1 == micro_batches && one_in(random, 2)});
      reference.add(pointers, weight, count);
    }
    const double loss_scale = one_in(random, 2) ? 1.0 : 1024.0;
    LossScaler scaler = LossScaler::fixed(loss_scale);
    const auto max_norm = one_in(random, 2) ? std::optional(0.5) : std::nullopt;
    optimizer.step(window, {.max_grad_norm = max_norm, .scaler = &scaler});
    compare(optimizer, reference.step(max_norm, loss_scale));
  }

  void compare(Optimizer& optimizer, const StepReport& expected) {
    const StepReport& got = optimizer.last_report();
    EXPECT_EQ(got.outcome, expected.outcome);
    if (expected.outcome != StepOutcome::kEmptyTotal) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(got.norm), std::bit_cast<std::uint64_t>(expected.norm));
      EXPECT_EQ(got.clip_coef, expected.clip_coef);
    }
    for (std::size_t t = 0; t < param.size(); ++t) {
      SCOPED_TRACE(testing::Message() << "tensor " << t << ", " << param[t].numel() << " elements");
      const ReferenceTensor& tensor = reference.tensors[t];
      EXPECT_TRUE(same_bits(param[t], tensor.param));
      EXPECT_TRUE(same_bits(model[t], tensor.model));
      EXPECT_TRUE(param[t].guards_are_intact() && (model[t].numel() == 0 || model[t].guards_are_intact()));
      EXPECT_EQ(optimizer.step_count(t), tensor.step);
      for (const OptimizerState& state : optimizer.state(t)) {
        const HostTensor& want = state.name == "exp_avg"          ? tensor.exp_avg
                                 : state.name == "exp_avg_sq"     ? tensor.exp_avg_sq
                                 : state.name == "max_exp_avg_sq" ? tensor.max_exp_avg_sq
                                                                  : tensor.momentum_buffer;
        const HostTensor got_state = copy_of(state.view);
        EXPECT_TRUE(same_bits(got_state, want)) << state.name;
      }
    }
  }

  Random random;
  std::vector<HostTensor> param, model;
  ParameterSet params;
  DType accumulate = one_in(random, 5) ? DType::kFloat64 : DType::kFloat32;
  ReferenceTrainer::Options options = random_options(random);
  ReferenceTrainer reference{accumulate, options};
};

TEST_P(BitEqualityOn, RandomWindowsGiveTheBitsOfTheReference) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RandomRun run(seed, GetParam());
    Window window(run.params, {.steps = 4, .accumulate = run.accumulate});
    const auto optimizer = make_optimizer(run.params, run.options);
    for (int i = 0; i < 3 && !HasFailure(); ++i) run.window(window, *optimizer);
    if (HasFailure()) return;
  }
}

TEST_P(BitEqualityOn, SmallTensorsNextToEachOtherGiveTheBitsOfTheReference) {
  // Such tensors are worked through in one run where all of their arrays touch; groups, gaps, step counts, absent
  // gradients and other dtypes must break a run, and an inf in one of its tensors must still be told by name.
  Random random(7);
  constexpr std::size_t kTensors = 400, kNumel = 64;
  HostTensor param = random_tensor(random, DType::kFloat32, kTensors * kNumel + 16);
  HostTensor model(DType::kFloat16, kTensors * kNumel);
  const auto part = [](const TensorView& all, std::size_t t, std::size_t gap) {
    return part_of(all, t * kNumel + gap, kNumel);
  };
  const AdamWOptions options{.lr = 0.01, .weight_decay = 0.1};
  ParameterSet params(GetParam().backend());
  ReferenceTrainer reference(DType::kFloat32, options);
  for (std::size_t t = 0; t < kTensors; ++t) {
    const TensorView view = part(param.view(), t, t < 300 ? 0 : 16);  // a gap in the middle of the array
    params.add(
        {.name = fmt::format("t{}", t), .param = view, .model = part(model.view(), t, 0), .group = t % 100 / 50});
    reference.add_tensor(copy_of(view), DType::kFloat16, true);
  }
  Window window(params, {.steps = 2});
  AdamW optimizer(params, options);
  for (int w = 0; w < 4; ++w) {
    std::vector<HostTensor> grads;
    for (const DType dtype : {DType::kFloat16, w == 1 ? DType::kBFloat16 : DType::kFloat16}) {
      grads.push_back(random_tensor(random, dtype, kTensors * kNumel));
    }
    if (w == 2) grads[0].set(222 * kNumel + 5, std::numeric_limits<double>::infinity());
    for (const HostTensor& grad : grads) {
      std::vector<ConstTensorView> views;
      std::vector<HostTensor> copies(kTensors);
      std::vector<const HostTensor*> pointers;
      for (std::size_t t = 0; t < kTensors; ++t) {
        const bool is_absent = w == 0 && t % 7 == 3;  // so later step counts differ
        views.push_back(is_absent ? ConstTensorView{} : part(grad.view(), t, 0));
        copies[t] = copy_of(part(grad.view(), t, 0));
        pointers.push_back(is_absent ? nullptr : &copies[t]);
      }
      window.add(views, {.weight = 3.0});
      reference.add(pointers, 3.0, 3.0);
    }
    optimizer.step(window, {.max_grad_norm = 0.5});
    EXPECT_EQ(optimizer.last_report().outcome, reference.step(0.5, 1.0).outcome);
    EXPECT_EQ(optimizer.last_report().is_skipped(), w == 2);
    if (w == 2) {
      EXPECT_EQ(optimizer.last_report().non_finite->tensor, 222u);
      EXPECT_EQ(optimizer.last_report().non_finite->micro_batch, 0u);
    }
    for (std::size_t t = 0; t < kTensors; ++t) {
      SCOPED_TRACE(testing::Message() << "window " << w << ", tensor " << t);
      ASSERT_TRUE(same_bits(copy_of(params[t].param), reference.tensors[t].param));
      ASSERT_TRUE(same_bits(copy_of(params[t].model), reference.tensors[t].model));
    }
  }
}

TEST_P(BitEqualityOn, BuffersBeyondTheCachesGiveTheBitsOfTheReference) {
  // From 32 MiB on, the first add and the model copy go around the caches: other loops, with aligned heads.
  if (GetParam().device != Device::kCpu) GTEST_SKIP() << "what a GPU does does not depend on the size";
  constexpr std::size_t kNumel = (std::size_t{17} << 20) + 3;
  HostTensor param(DType::kFloat32, kNumel, 1), model(DType::kBFloat16, kNumel, 3), grad(DType::kFloat16, kNumel, 5);
  for (std::size_t i = 0; i < kNumel; ++i) {
    param.set_bits(i, 0x3f800000u + i);
    grad.set_bits(i, 0x3c00u + i % 0x300u);
  }
  ParameterSet params(GetParam().backend());
  params.add({.name = "large", .param = param.view(), .model = model.view()});
  Window window(params, {.steps = 2});
  Sgd optimizer(params, {.lr = 0.5});
  const ConstTensorView views[] = {grad.view()};
  window.add(views, {.weight = 3.0});
  window.add(views, {.weight = 5.0});
  optimizer.step(window);
  const float scale = 1.0f / 8.0f;
  for (std::size_t i = 0; i < kNumel; ++i) {
    const float g = element::float_from_float16(static_cast<std::uint32_t>(0x3c00u + i % 0x300u));
    const float value = std::fmaf(5.0f, g, 3.0f * g) * scale;
    const float expected = std::fmaf(-0.5f, value, element::float_of_bits(static_cast<std::uint32_t>(0x3f800000u + i)));
    ASSERT_EQ(param.bits(i), element::bits_of_float(expected)) << i;
    ASSERT_EQ(model.bits(i), element::bfloat16_from_float_bits(element::bits_of_float(expected))) << i;
  }
  EXPECT_TRUE(param.guards_are_intact() && model.guards_are_intact());
}

}  // namespace
}  // namespace gradfuse::test
