// The Transformer: gradients against finite differences in double, micro-batches against one
// batch, the same bits with and without checkpoints, and what it refuses.
#include <gmock/gmock.h>
#include <gradfuse/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/error_of.hpp"
#include "tests/nn/double_transformer.hpp"

namespace gradfuse::nn {
namespace {

using test::error_of;
using testing::HasSubstr;

// With h = 2^-17 central differences err by h^2/6 |f'''|, below 6e-11 * 1e2 / 6 here, and by the rounding of a loss sum
// of about 30 over h: 100 roundings * 2^-53 * 30 / h = 5e-8. 5e-7 leaves a factor of ten, and is 1e-6 of a typical
// gradient.
TEST(TransformerGradient, MatchesCentralDifferencesInDoubleForEveryParameter) {
  constexpr double kStep = 0x1p-17, kTolerance = 5e-7;
  for (const bool is_tied : {true, false}) {
    DoubleTransformer model(small(is_tied));
    const Tokens tokens = random_tokens(model.options, 2, 6, 1);
    model.backward(tokens);
    const std::vector<double> analytic = model.grads;
    for (const NamedSegment& named : model.layout.parameters) {
      double largest = 0;
      for (std::size_t i = 0; i<named.segment.numel; i += named.segment.numel> 100 ? 7 : 1) {
        double& param = model.params[named.segment.offset + i];
        const double saved = param;
        param = saved + kStep;
        const double above = model.backward(tokens);
        param = saved - kStep;
        const double below = model.backward(tokens);
        param = saved;
        const double exact = analytic[named.segment.offset + i];
        largest = std::max(largest, std::abs(exact));
        EXPECT_LE(std::abs((above - below) / (2 * kStep) - exact), kTolerance) << named.name << "[" << i << "]";
      }
      // The softmax does not see what the bias of the keys adds to all scores of a query; every other tensor counts.
      EXPECT_GE(largest, 1e-3) << named.name;
    }
  }
}

ParameterSet set_of(const Transformer& model) {
  ParameterSet params;
  for (const Parameter& p : model.parameters()) params.add({.name = p.name, .param = p.param, .model = p.model});
  return params;
}
std::vector<float> all_gradients(const Transformer& model) {
  std::vector<float> all;
  for (const Parameter& p : model.parameters()) {
    const std::vector<float> grad = elements<float>(p.grad);
    all.insert(all.end(), grad.begin(), grad.end());
  }
  return all;
}

TEST(Transformer, GivesTheSameBitsWithAndWithoutCheckpointsInLessMemory) {
  TransformerOptions options = small();
  options.layers = 5;
  const Tokens tokens = random_tokens(options, 4, 7, 5);
  Transformer whole(options);
  whole.backward(tokens.batch());
  for (const std::size_t every : {1u, 2u, 3u, 9u}) {
    options.checkpoint_every = every;
    Transformer sparing(options);
    sparing.backward(tokens.batch());
    EXPECT_EQ(all_gradients(sparing), all_gradients(whole)) << every;
    if (every < 3) {
      EXPECT_LT(plan_memory(options, 4, 7).activations, plan_memory(small(), 4, 7).activations);
    }
  }
}

TEST(Transformer, GivesTheSameBitsOnEveryTargetAndThreadCountBesideTheProducts) {
  // Products of oneDNN are the same for all: they take OpenMP's number of threads, not the backend's.
  TransformerOptions options = small();
  options.width = 48;
  options.context = 70;
  const Tokens tokens = random_tokens(options, 3, 70, 6);
  Transformer reference(options);
  reference.backward(tokens.batch());
  for (const std::string& target : cpu_targets()) {
    for (const int threads : {1, 3}) {
      options.backend = cpu_backend({.threads = threads, .target = target});
      Transformer other(options);
      other.backward(tokens.batch());
      EXPECT_EQ(all_gradients(other), all_gradients(reference)) << target << ", " << threads;
    }
  }
}

TEST(Transformer, DoesNotSeeTheFuture) {
  Transformer model(small());
  Tokens tokens = random_tokens(small(), 1, 7, 8);
  const std::vector<float> before = model.next_logits(std::span(tokens.inputs).first(4));
  const std::vector<float> longer = model.next_logits(tokens.inputs);
  tokens.inputs[6] = (tokens.inputs[6] + 1) % 11;
  EXPECT_NE(model.next_logits(tokens.inputs), longer);
  // The loss of the first positions stays what it was.
  std::ranges::fill(tokens.targets, kIgnoredTarget);
  for (std::size_t i = 0; i < 4; ++i) tokens.targets[i] = 3;
  const double loss = model.evaluate(tokens.batch());
  tokens.inputs[5] = (tokens.inputs[5] + 1) % 11;
  EXPECT_EQ(model.evaluate(tokens.batch()), loss);
  EXPECT_EQ(before.size(), 11u);
}

/// The gradient that a window has come to, over its total.
std::vector<double> normalised(const Window& window) {
  std::vector<double> all;
  for (std::size_t t = 0; t < window.params().size(); ++t) {
    for (const float value : elements<float>(window.accumulator(t))) all.push_back(value / window.total_count());
  }
  return all;
}
double relative_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, magnitude = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    magnitude += b[i] * b[i];
  }
  return std::sqrt(difference / magnitude);
}
Tokens part_of(const Tokens& all, std::size_t first, std::size_t sequences) {
  const auto begin = static_cast<std::ptrdiff_t>(first * all.positions);
  const auto end = begin + static_cast<std::ptrdiff_t>(sequences * all.positions);
  return {{all.inputs.begin() + begin, all.inputs.begin() + end},
          {all.targets.begin() + begin, all.targets.begin() + end},
          all.positions};
}

TEST(Transformer, UnevenMicroBatchesGiveTheGradientOfTheWholeByEveryRoute) {
  const TransformerOptions options = small();
  Tokens all = random_tokens(options, 9, 7, 9);
  for (std::size_t i = 0; i < 3 * 7 - 2; ++i) all.targets[i] = kIgnoredTarget;  // the first part has two targets
  Transformer model(options);
  const ParameterSet params = set_of(model);
  Window whole(params, {.steps = 2}), parts(params, {.steps = 9}), straight(params, {.steps = 9}),
      streamed(params, {.steps = 9}), means(params, {.steps = 9});
  const auto grads = [&] {
    std::vector<ConstTensorView> views;
    for (const Parameter& p : model.parameters()) views.push_back(p.grad);
    return views;
  };
  model.backward(all.batch());
  whole.add(grads(), {.weight = static_cast<double>(count_targets(all.targets))});
  std::size_t first = 0;
  for (const std::size_t sequences : {3u, 1u, 4u, 1u}) {
    const Tokens part = part_of(all, first, sequences);
    const auto count = static_cast<double>(count_targets(part.targets));
    model.backward(part.batch());
    parts.add(grads(), {.weight = count});
    means.add(grads());
    EXPECT_EQ(model.accumulate(part.batch(), straight), count_targets(part.targets));
    straight.add(std::span<const Gradient>{}, {.weight = count});
    EXPECT_EQ(model.stream(part.batch(), streamed), count_targets(part.targets));
    streamed.add(std::span<const Gradient>{}, {.weight = count});
    first += sequences;
  }
  EXPECT_EQ(parts.total_count(), whole.total_count());
  // Sums of about 60 rows in float, in another order: 60 * 2^-24 = 4e-6 at the worst, and about its root on average.
  EXPECT_LE(relative_difference(normalised(parts), normalised(whole)), 1e-6);
  EXPECT_LE(relative_difference(normalised(straight), normalised(whole)), 1e-6);
  EXPECT_LE(relative_difference(normalised(streamed), normalised(whole)), 1e-6);
  EXPECT_GE(relative_difference(normalised(means), normalised(whole)), 0.05) << "a mean of means is another gradient";
}

TEST(Transformer, LearnsABatchByHeart) {
  TransformerOptions options = small();
  options.width = 24;
  Transformer model(options);
  const ParameterSet params = set_of(model);
  const Tokens tokens = random_tokens(options, 2, 7, 10);
  Window window(params, {.steps = 2});
  AdamW optimizer(params, {.lr = 1e-2, .weight_decay = 0.0});
  for (int step = 0; step < 150; ++step) {
    const auto count = static_cast<double>(model.accumulate(tokens.batch(), window));
    window.add(std::span<const Gradient>{}, {.weight = count});
    optimizer.step(window, {.max_grad_norm = 1.0});
  }
  EXPECT_LE(model.evaluate(tokens.batch()), 0.05);
}

TEST(Transformer, HalfPrecisionRunsOnTheRoundedParameters) {
  for (const DType precision : {DType::kFloat16, DType::kBFloat16}) {
    TransformerOptions options = small();
    Transformer single(options);
    options.precision = precision;
    Transformer half(options);
    for (std::size_t i = 0; i < half.parameters().size(); ++i) {
      cast(ConstTensorList({half.parameters()[i].model}), TensorList({single.parameters()[i].param}));
    }
    const Tokens tokens = random_tokens(options, 2, 7, 11);
    half.backward(tokens.batch(), 64.0f);
    single.backward(tokens.batch(), 64.0f);
    for (std::size_t i = 0; i < half.parameters().size(); ++i) {
      const std::vector<float> exact = elements<float>(single.parameters()[i].grad);
      EXPECT_EQ(elements<std::uint16_t>(half.parameters()[i].grad), rounded(exact, precision));
    }
  }
}

TEST(TransformerRefused, OptionsAndBatches) {
  TransformerOptions bad = small();
  bad.heads = 5;
  EXPECT_THAT(error_of([&] { Transformer{bad}; }), HasSubstr("width 12 is no multiple of 5 heads"));
  bad = small();
  bad.layers = 0;
  EXPECT_THAT(error_of([&] { Transformer{bad}; }), HasSubstr("layers: 0"));
  Transformer model(small());
  Tokens tokens = random_tokens(small(), 2, 7, 1);
  const auto refusal = [&] { return error_of([&] { model.backward(tokens.batch()); }); };
  tokens.inputs[3] = 11;
  EXPECT_THAT(refusal(), HasSubstr("inputs: position 3 is 11; expected 0..10"));
  tokens.inputs[3] = 0;
  tokens.targets[5] = -1;
  EXPECT_THAT(refusal(), HasSubstr("targets: position 5 is -1; expected 0..10, or -100 to ignore it"));
  tokens.targets.pop_back();
  EXPECT_THAT(refusal(), HasSubstr("targets: 13 beside 14 inputs"));
  tokens.positions = 8;
  EXPECT_THAT(refusal(), HasSubstr("sequences of 8 positions; the position table has 1..7"));
  tokens.positions = 4;
  EXPECT_THAT(refusal(), HasSubstr("14 tokens are no whole number of sequences of 4"));
  TransformerOptions sparing = small();
  sparing.has_gradients = false;
  Transformer without(sparing);
  tokens = random_tokens(small(), 2, 7, 1);
  EXPECT_THAT(error_of([&] { without.backward(tokens.batch()); }), HasSubstr("made without gradients"));
  EXPECT_TRUE(without.parameters()[0].grad.is_absent());
  ParameterSet others;
  Window window(others);
  tokens = random_tokens(small(), 2, 7, 1);
  EXPECT_THAT(error_of([&] { model.accumulate(tokens.batch(), window); }), HasSubstr("0 tensors"));
}

}  // namespace
}  // namespace gradfuse::nn
