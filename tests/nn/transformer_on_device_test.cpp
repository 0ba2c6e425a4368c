// The Transformer on every machine: in float it is the one in double, and it trains by every route.
#include <gradfuse/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/core/training.hpp"
#include "tests/nn/double_transformer.hpp"

namespace gradfuse::nn {
namespace {

using TransformerOn = test::OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, TransformerOn, testing::ValuesIn(test::all_machines()), test::machine_name);

// As for the MLP: float is the exact computation on operands that are off by as many u = 2^-24 as roundings reach them,
// some 40 a layer and direction in 3 blocks of 4 layers, and as many more as a sequence has positions to add up: at
// most 2 * 12 * (40 + positions). How strongly the gradient answers is measured. 40 positions are two tiles of
// attention.
TEST_P(TransformerOn, StaysWithinWhatItsRoundingsExplain) {
  for (const std::size_t positions : {7u, 40u}) {
    const double roundings = 24.0 * static_cast<double>(40 + positions) * 0x1p-24;
    TransformerOptions options = small();
    options.context = positions;
    DoubleTransformer exact(options);
    const Tokens tokens = random_tokens(options, 2, positions, 4);
    const double exact_loss = exact.backward(tokens);
    std::vector<double> answer(exact.layout.numel, 0.0);
    std::mt19937_64 random(7);
    for (int draw = 0; draw < 8; ++draw) {
      DoubleTransformer other(options);
      for (double& param : other.params) param *= 1 + (random() % 2 == 0 ? roundings : -roundings);
      other.backward(tokens);
      for (std::size_t i = 0; i < answer.size(); ++i) {
        answer[i] = std::max(answer[i], std::abs(other.grads[i] - exact.grads[i]));
      }
    }
    options.backend = backend;
    const DeviceMemory& memory = backend->memory();
    TransformerNet<float> net(options, exact.layout);
    const std::vector<float> host_params(exact.params.begin(), exact.params.end());
    DeviceArray<float> params, grads;
    params.grow(memory, exact.layout.numel);
    grads.grow(memory, exact.layout.numel);
    memory.upload(params.data(), host_params.data(), host_params.size() * sizeof(float));
    FlatTargets<float> targets(exact.layout, grads.data());
    net.backward(tokens.batch(), params.data(), 1.0f, targets);
    const std::vector<float> got = grads.to_host(memory);
    double largest_grad = 0;
    for (const double grad : exact.grads) largest_grad = std::max(largest_grad, std::abs(grad));
    for (const NamedSegment& named : exact.layout.parameters) {
      const auto of_tensor = named.segment.of(std::span<const double>(answer));
      const double tolerance = *std::ranges::max_element(of_tensor) + roundings * largest_grad;
      for (std::size_t i = named.segment.offset; i < named.segment.offset + named.segment.numel; ++i) {
        EXPECT_LE(std::abs(got[i] - exact.grads[i]), tolerance) << named.name;
      }
    }
    EXPECT_NEAR(net.take_loss_sum(), exact_loss, roundings * exact_loss);
  }
}

TEST_P(TransformerOn, LearnsByEveryRoute) {
  TransformerOptions options = small();
  options.layers = 1;
  options.backend = backend;
  const Tokens tokens = random_tokens(options, 2, 7, 10);
  const auto count = static_cast<double>(count_targets(tokens.targets));
  for (const int route : {0, 1, 2}) {
    Transformer model(options);
    ParameterSet params(backend);
    std::vector<ConstTensorView> grads;
    for (const Parameter& p : model.parameters()) {
      params.add({.name = p.name, .param = p.param, .model = p.model});
      grads.push_back(p.grad);
    }
    Window window(params, {.steps = 2});
    AdamW optimizer(params, {.lr = 1e-2});
    const double before = model.evaluate(tokens.batch());
    for (int step = 0; step < 6; ++step) {
      for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
        if (route == 0) {
          model.backward(tokens.batch());
          window.add(grads, {.weight = count});
          continue;
        }
        route == 1 ? model.accumulate(tokens.batch(), window) : model.stream(tokens.batch(), window);
        window.add(std::span<const Gradient>{}, {.weight = count});
      }
      optimizer.step(window, {.max_grad_norm = 1.0});
      EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kApplied);
    }
    EXPECT_LT(model.evaluate(tokens.batch()), before - 0.1) << "route " << route;
    EXPECT_EQ(model.next_logits(std::span(tokens.inputs).first(5)).size(), options.vocabulary);
  }
}

}  // namespace
}  // namespace gradfuse::nn
