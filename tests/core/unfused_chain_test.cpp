// The unfused chain is the other side of every benchmark: it must do the same work as the fused passes.
#include <gradfuse/unfused_chain.hpp>

#include <cmath>
#include <limits>
#include <memory>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using UnfusedChainOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, UnfusedChainOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

std::unique_ptr<Optimizer> fused(const ParameterSet& params, const UnfusedChain::Options& options) {
  if (const auto* o = std::get_if<AdamWOptions>(&options)) return std::make_unique<AdamW>(params, *o);
  if (const auto* o = std::get_if<AdamOptions>(&options)) return std::make_unique<Adam>(params, *o);
  return std::make_unique<Sgd>(params, std::get<SgdOptions>(options));
}

/// The same parameters, trained by the fused passes and by the chain.
struct Pair {
  Pair(const std::shared_ptr<const Backend>& backend, const UnfusedChain::Options& options_, std::size_t steps = 3)
      : chained((add_tensors(both[0], backend), add_tensors(both[1], backend), both[1]->params), options_),
        window(both[0]->params, {.steps = steps}),
        optimizer(fused(both[0]->params, options_)) {}
  static void add_tensors(std::unique_ptr<OwnedSet>& set, std::shared_ptr<const Backend> backend) {
    Random random(1);
    set = std::make_unique<OwnedSet>(std::move(backend));
    set->add(moderate_tensor(random, DType::kFloat32, 4500), DType::kBFloat16);
    set->add(moderate_tensor(random, DType::kFloat32, 17), DType::kFloat16);
    set->add(moderate_tensor(random, DType::kFloat32, 100));
  }
  std::vector<HostTensor> grads(Random& random, DType dtype) const {
    std::vector<HostTensor> made;
    for (const HostTensor& param : both[0]->param) made.push_back(moderate_tensor(random, dtype, param.numel()));
    return made;
  }
  void add(const std::vector<HostTensor>& grads, double weight) {
    window.add(views_of(grads), {.weight = weight});
    chained.add(views_of(grads), weight);
  }
  void step(std::optional<double> max_norm = std::nullopt) {
    optimizer->step(window, {.max_grad_norm = max_norm, .scaler = &scalers[0]});
    report = chained.step({.max_grad_norm = max_norm, .scaler = &scalers[1]});
    EXPECT_EQ(report.outcome, optimizer->last_report().outcome);
    EXPECT_EQ(report.total_count, optimizer->last_report().total_count);
    EXPECT_EQ(report.micro_batches, optimizer->last_report().micro_batches);
    EXPECT_EQ(report.window, optimizer->last_report().window);
    EXPECT_EQ(report.loss_scale, optimizer->last_report().loss_scale);
    EXPECT_EQ(scalers[0].scale(), scalers[1].scale());
    EXPECT_EQ(scalers[0].state().growth_tracker, scalers[1].state().growth_tracker);
  }
  double largest_difference() const {
    double largest = 0.0;
    for (std::size_t t = 0; t < both[0]->param.size(); ++t) {
      for (std::size_t i = 0; i < both[0]->param[t].numel(); ++i) {
        const double difference = std::fabs(both[0]->param[t].get(i) - both[1]->param[t].get(i));
        if (!(difference <= largest)) largest = difference;  // a NaN stays
        if (std::isnan(difference)) return difference;
      }
    }
    return largest;
  }

  std::unique_ptr<OwnedSet> both[2];  // fused, chained
  UnfusedChain chained;
  Window window;
  std::unique_ptr<Optimizer> optimizer;
  LossScaler scalers[2] = {LossScaler({.init_scale = 8.0, .growth_interval = 2}),
                           LossScaler({.init_scale = 8.0, .growth_interval = 2})};
  StepReport report;
};

const UnfusedChain::Options kOptions[] = {
    AdamWOptions{.lr = 0.01}, AdamOptions{.lr = 0.01, .weight_decay = 0.1}, SgdOptions{.lr = 0.01},
    SgdOptions{.lr = 0.01, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1}};

TEST_P(UnfusedChainOn, AgreesWithTheFusedPassesWithinRounding) {
  for (const UnfusedChain::Options& options : kOptions) {
    for (const auto max_norm : {std::optional<double>(), std::optional(0.5)}) {
      Random random(2);
      Pair pair(backend, options);
      constexpr int kWindows = 5;
      for (int w = 0; w < kWindows; ++w) {
        std::vector<std::vector<HostTensor>> grads;
        for (int b = 0; b < 3; ++b) grads.push_back(pair.grads(random, DType::kFloat16));
        for (std::size_t b = 0; b < 3; ++b) pair.add(grads[b], static_cast<double>(b + 1));
        pair.step(max_norm);
        // Squares are of gradients rounded once more; their relative error of 2^-24 is at most that of the norm.
        const double norm = pair.optimizer->last_report().norm;
        EXPECT_LE(std::fabs(pair.report.norm - norm), 2 * 0x1p-24 * norm);
        EXPECT_LE(std::fabs(pair.report.clip_coef - pair.optimizer->last_report().clip_coef), 2 * 0x1p-24);
      }
      // Unscaling and clipping round each gradient twice more: 2u of it, with u = 2^-24, where the fused factor rounds
      // once. Adam's quotient moves by 4u times a cancellation of at most 8 between exp_avg's terms, so by 32u lr a
      // step; SGD's buffer of at most 20 by 3u * 20 lr. Each parameter, below 4, rounds apart by 4u of it a step.
      EXPECT_LE(pair.largest_difference(), kWindows * 0x1p-24 * (64.0 * 0.01 + 4.0 * 4.0));
      for (std::size_t t = 0; t < 2; ++t) {
        const HostTensor& model = pair.both[1]->model[t];
        for (std::size_t i = 0; i < model.numel(); ++i) {
          HostTensor rounded(model.dtype(), 1);
          rounded.set(0, pair.both[1]->param[t].get(i));
          ASSERT_EQ(model.bits(i), rounded.bits(0)) << "model copy " << t << ", element " << i;
        }
      }
    }
  }
}

TEST_P(UnfusedChainOn, SkipsTheSameWindows) {
  const double kinds[] = {0.0, kInf, kNan, -kInf, 0.0, 0.0, kInf};
  for (const UnfusedChain::Options& options : kOptions) {
    Random random(3);
    Pair pair(backend, options, 2);
    for (const double kind : kinds) {
      std::vector<HostTensor> first = pair.grads(random, DType::kFloat16), second = pair.grads(random, DType::kFloat16);
      if (kind != 0.0) first[0].set(4499, kind);
      pair.add(first, 1.0);
      pair.add(second, 1.0);
      const std::vector<HostTensor> before = pair.both[1]->param, model = pair.both[1]->model;
      pair.step(1.0);
      EXPECT_EQ(pair.report.is_skipped(), kind != 0.0);
      for (std::size_t t = 0; kind != 0.0 && t < before.size(); ++t) {
        EXPECT_TRUE(same_bits(pair.both[1]->param[t], before[t]));
        EXPECT_TRUE(model[t].numel() == 0 || same_bits(pair.both[1]->model[t], model[t]));
      }
    }
    EXPECT_LE(pair.largest_difference(), 3 * 0x1p-24 * (64.0 * 0.01 + 16.0));  // the bound above, for 3 steps
  }
}

TEST_P(UnfusedChainOn, SkipsAWindowWithATotalOfZeroAsTheFusedPassesDo) {
  Random random(4);
  Pair pair(backend, kOptions[0], 1);
  std::vector<HostTensor> grads = pair.grads(random, DType::kFloat32);
  pair.add(grads, 0.0);
  pair.step();
  EXPECT_EQ(pair.report.outcome, StepOutcome::kEmptyTotal);
}

TEST_P(UnfusedChainOn, AWeightOfZeroDoesNotReadTheGradientsAsInAWindow) {
  Random random(5);
  Pair pair(backend, kOptions[2], 2);
  std::vector<HostTensor> nan = pair.grads(random, DType::kFloat32), good = pair.grads(random, DType::kFloat32);
  nan[0].fill(kNan);
  pair.add(nan, 0.0);
  pair.add(good, 2.0);
  pair.step();
  EXPECT_EQ(pair.report.outcome, StepOutcome::kApplied);
}

TEST_P(UnfusedChainOn, SkipsANormThatFloat32CannotHoldAsTheFusedPassesDo) {
  Random random(6);
  Pair pair(backend, kOptions[2], 1);
  pair.scalers[0] = pair.scalers[1] = LossScaler::off();
  std::vector<HostTensor> grads = pair.grads(random, DType::kFloat32);
  for (std::size_t i = 0; i < 100; ++i) grads[2].set(i, 3e38);
  pair.add(grads, 1.0);
  pair.step();
  EXPECT_EQ(pair.report.outcome, StepOutcome::kNonFinite);
}

TEST_P(UnfusedChainOn, ALearningRateMayChangeBetweenSteps) {
  Random random(7);
  Pair pair(backend, kOptions[0], 1);
  for (const double lr : {0.01, 0.005, 0.001}) {
    std::get<AdamWOptions>(pair.chained.options()).lr = lr;
    static_cast<AdamW&>(*pair.optimizer).group(0).lr = lr;
    const std::vector<HostTensor> grads = pair.grads(random, DType::kFloat32);
    pair.add(grads, 1.0);
    pair.step();
  }
  EXPECT_LE(pair.largest_difference(), 3 * 0x1p-24 * (64.0 * 0.01 + 16.0));
}

TEST(UnfusedChain, GoesOnAfterARefusedMicroBatch) {
  OwnedSet set;
  set.add(tensor_of(DType::kFloat32, {0.0}));
  UnfusedChain chain(set.params, SgdOptions{.lr = 1.0});
  const HostTensor one = tensor_of(DType::kFloat32, {1.0}), two = tensor_of(DType::kFloat32, {1.0, 2.0});
  const ConstTensorView good[] = {one.view()}, null[] = {{nullptr, 1, DType::kFloat32}}, longer[] = {two.view()};
  chain.add(good);
  EXPECT_THAT([&] { chain.add(longer); }, throws_saying("elements"));
  chain.add(good);
  EXPECT_THAT([&] { chain.add(null); }, throws_saying("null"));
  chain.add(good);  // the views that were accepted last must not count as known without their list
  EXPECT_EQ(chain.step().micro_batches, 3u);
  EXPECT_EQ(set.param[0].get(0), -1.0);
}

TEST(UnfusedChain, RefusesBadStepOptionsBeforeItChangesAnything) {
  for (const int what : {0, 1}) {
    OwnedSet set, clean;
    for (OwnedSet* each : {&set, &clean}) each->add(tensor_of(DType::kFloat32, {1.0, 2.0}));
    UnfusedChain chain(set.params, AdamWOptions{}), clean_chain(clean.params, AdamWOptions{});
    const HostTensor grad = tensor_of(DType::kFloat32, {3.0, 4.0});
    const ConstTensorView views[] = {grad.view()};
    for (UnfusedChain* each : {&chain, &clean_chain}) each->add(views, 3.0);
    if (what == 0) {
      EXPECT_THAT([&] { chain.step({.max_grad_norm = -1.0}); }, throws_saying("-1"));
    } else {
      std::get<AdamWOptions>(chain.options()).beta1 = 2.0;
      EXPECT_THAT([&] { chain.step(); }, throws_saying("beta1"));
      std::get<AdamWOptions>(chain.options()).beta1 = 0.9;
    }
    const StepReport report = chain.step(), expected = clean_chain.step();
    EXPECT_EQ(report.norm, expected.norm);
    EXPECT_EQ(report.window, expected.window);
    EXPECT_TRUE(same_bits(set.param[0], clean.param[0]));
  }
}

TEST(UnfusedChain, RefusesWhatItDoesNotDo) {
  OwnedSet set;
  set.add(tensor_of(DType::kFloat32, {1.0}));
  EXPECT_THAT([&] { UnfusedChain(set.params, AdamWOptions{.amsgrad = true}); }, throws_saying("amsgrad"));
  EXPECT_THAT([&] { UnfusedChain(set.params, AdamOptions{.amsgrad = true}); }, throws_saying("amsgrad"));
  UnfusedChain chain(set.params, SgdOptions{});
  EXPECT_THAT([&] { chain.step(); }, throws_saying("micro-batch"));
  const ConstTensorView absent[1] = {};
  EXPECT_THAT([&] { chain.add(absent); }, throws_saying("tensor 0"));
  const HostTensor one = tensor_of(DType::kFloat32, {1.0});
  const ConstTensorView good[] = {one.view()};
  for (const double weight : {-1.0, kNan, kInf}) {
    EXPECT_THAT([&] { chain.add(good, weight); }, throws_saying("weight")) << weight;
  }
}

TEST(UnfusedChain, OfNoTensorsIsNoWork) {
  OwnedSet set;
  UnfusedChain chain(set.params, SgdOptions{});
  chain.add({});
  EXPECT_EQ(chain.step().outcome, StepOutcome::kApplied);
}

}  // namespace
}  // namespace gradfuse::test
