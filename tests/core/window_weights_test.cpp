// Weights and counts: the mean over a window, however its micro-batches are cut (torch-contract.md, section 5).
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using WindowWeightsOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, WindowWeightsOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Batch {
  HostTensor grad;
  MicroBatch micro_batch;
};
/// The gradient that a step of SGD with a learning rate of 1 applies to zeros.
HostTensor applied(std::shared_ptr<const Backend> backend, const std::vector<Batch>& batches,
                   std::optional<double> fixed_total = std::nullopt) {
  OwnedSet set(std::move(backend));
  set.add(HostTensor(DType::kFloat32, batches[0].grad.numel()));
  Window window(set.params, {.steps = batches.size(), .fixed_total = fixed_total});
  Sgd optimizer(set.params, {.lr = 1.0});
  for (const Batch& batch : batches) {
    const ConstTensorView views[] = {batch.grad.view()};
    window.add(views, batch.micro_batch);
  }
  optimizer.step(window);
  HostTensor gradient = set.param[0];
  for (std::size_t i = 0; i < gradient.numel(); ++i) gradient.set(i, -gradient.get(i));
  return gradient;
}
HostTensor single(double value) { return tensor_of(DType::kFloat32, {value}); }

// E1: one weight of 1, token losses w * x; micro-batches [2, 4], [6], [1, 1, 1, 1], [10]. 8 tokens, sum 26, mean 3.25.
TEST_P(WindowWeightsOn, TheWorkedExampleGivesTheMeanOverTokens) {
  const std::vector<Batch> means{{single(3.0), {.weight = 2.0}},
                                 {single(6.0), {.weight = 1.0}},
                                 {single(1.0), {.weight = 4.0}},
                                 {single(10.0), {.weight = 1.0}}};
  const std::vector<Batch> sums{{single(6.0), {.count = 2.0}},
                                {single(6.0), {.count = 1.0}},
                                {single(4.0), {.count = 4.0}},
                                {single(10.0), {.count = 1.0}}};
  const double n = 8.0;
  const std::vector<Batch> normalised{
      {single(6 / n), {}}, {single(6 / n), {}}, {single(4 / n), {}}, {single(10 / n), {}}};
  EXPECT_EQ(applied(backend, means).get(0), 3.25) << "means weighted by tokens";
  EXPECT_EQ(applied(backend, sums).get(0), 3.25) << "sums counted by tokens";
  EXPECT_EQ(applied(backend, normalised, 1.0).get(0), 3.25) << "normalised by the caller";
  const std::vector<Batch> unweighted{{single(3.0), {}}, {single(6.0), {}}, {single(1.0), {}}, {single(10.0), {}}};
  EXPECT_EQ(applied(backend, unweighted).get(0), 5.0) << "the mean of means is another number: 54 % too much";
}

TEST_P(WindowWeightsOn, UnequalMicroBatchesGiveTheGradientOfTheBigBatch) {
  Random random(1);
  constexpr std::size_t kNumel = 701;
  const std::vector<std::size_t> tokens{5, 1, 19, 2, 40};
  std::vector<Batch> means, sums;
  std::vector<double> sum(kNumel), magnitudes(kNumel);
  double total = 0.0;
  for (const std::size_t count : tokens) {
    std::vector<double> part(kNumel);
    for (std::size_t i = 0; i < kNumel; ++i) {
      for (std::size_t token = 0; token < count; ++token) {
        const double grad = normal(random);
        part[i] += grad;
        magnitudes[i] += std::fabs(grad);
      }
      sum[i] += part[i];
    }
    const auto n = static_cast<double>(count);
    total += n;
    sums.push_back({tensor_of(DType::kFloat32, part), {.count = n}});
    for (double& value : part) value /= n;
    means.push_back({tensor_of(DType::kFloat32, part), {.weight = n}});
  }
  // Of the magnitudes' sum: a rounding of each given gradient, one an add, one of 1/total and one of the product.
  const double relative = static_cast<double>(tokens.size() + 3) * 0x1p-24;
  for (const auto& batches : {means, sums}) {
    const HostTensor gradient = applied(backend, batches);
    for (std::size_t i = 0; i < kNumel; ++i) {
      ASSERT_LE(std::fabs(gradient.get(i) - sum[i] / total), relative * magnitudes[i] / total) << i;
    }
  }
}

TEST_P(WindowWeightsOn, WeightsOfOneOverKGiveTheMean) {
  Random random(2);
  for (const std::size_t num : {1, 2, 3, 7, 64}) {
    const auto k = static_cast<double>(num);
    std::vector<Batch> batches;
    for (std::size_t b = 0; b < num; ++b) {
      batches.push_back({moderate_tensor(random, DType::kBFloat16, 301), {.weight = 1.0 / k}});
    }
    for (const auto fixed_total : {std::optional<double>(), std::optional(1.0)}) {
      const HostTensor gradient = applied(backend, batches, fixed_total);
      for (std::size_t i = 0; i < gradient.numel(); ++i) {
        double sum = 0.0, magnitudes = 0.0;
        for (const Batch& batch : batches) {
          sum += batch.grad.get(i);
          magnitudes += std::fabs(batch.grad.get(i));
        }
        // As above, and the rounding of the weight instead of the gradient's.
        ASSERT_LE(std::fabs(gradient.get(i) - sum / k), (k + 3) * 0x1p-24 * magnitudes / k) << num << ", element " << i;
      }
    }
  }
}

TEST_P(WindowWeightsOn, AWeightOfZeroDoesNotReadTheGradients) {
  // The mean over no tokens is NaN; first, in the middle and last.
  const Batch empty{single(kNan), {.weight = 0.0}}, two{single(2.0), {.weight = 3.0}},
      six{single(6.0), {.weight = 1.0}};
  EXPECT_EQ(applied(backend, {empty, two, six}).get(0), 3.0);
  EXPECT_EQ(applied(backend, {two, empty, six}).get(0), 3.0);
  EXPECT_EQ(applied(backend, {two, six, empty}).get(0), 3.0);
  EXPECT_EQ(applied(backend, {empty, empty, six, empty}).get(0), 6.0);
}

TEST_P(WindowWeightsOn, ATotalOfZeroSkipsTheWindowAndLeavesTheScalerAlone) {
  Random random(3);
  OwnedSet set(backend);
  set.add(random_tensor(random, DType::kFloat32, 5000), DType::kFloat16);
  Window window(set.params, {.steps = 2});
  AdamW optimizer(set.params);
  LossScaler scaler({.init_scale = 8.0, .growth_interval = 2});
  std::vector<HostTensor> grads = set.zero_grads();
  step_on(window, optimizer, grads, {.scaler = &scaler});
  const Snapshot before = snapshot(set, optimizer);
  grads[0].fill(kNan);
  for (int b = 0; b < 2; ++b) window.add(views_of(grads), {.weight = 0.0});
  optimizer.step(window, {.max_grad_norm = 1.0, .scaler = &scaler});
  EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kEmptyTotal);
  EXPECT_TRUE(optimizer.last_report().is_skipped());
  EXPECT_FALSE(optimizer.last_report().non_finite.has_value());
  EXPECT_EQ(optimizer.last_report().total_count, 0.0);
  EXPECT_TRUE(same(snapshot(set, optimizer), before));
  EXPECT_EQ(scaler.scale(), 8.0f);
  EXPECT_EQ(scaler.state().growth_tracker, 1);
  // Gradients, but a count of nothing: the sum over no tokens.
  grads = set.zero_grads();
  window.add(views_of(grads), {.count = 0.0, .is_last = true});
  optimizer.step(window, {.scaler = &scaler});
  EXPECT_EQ(optimizer.last_report().outcome, StepOutcome::kEmptyTotal);
  EXPECT_EQ(scaler.state().growth_tracker, 1);
}

TEST_P(WindowWeightsOn, TheTotalIsTheSumOfCountsOrWhatWasFixed) {
  OwnedSet set(backend);
  set.add(HostTensor(DType::kFloat32, 1));
  const ConstTensorView none[1] = {};
  Window sum(set.params, {.steps = 4}), fixed(set.params, {.steps = 4, .fixed_total = 10.0});
  for (Window* window : {&sum, &fixed}) {
    window->add(none);
    window->add(none, {.weight = 2.5});
    window->add(none, {.weight = 2.5, .count = 100.0});
    window->add(none, {.count = 0.0});
  }
  EXPECT_EQ(sum.total_count(), 103.5);
  EXPECT_EQ(fixed.total_count(), 10.0);
}

}  // namespace
}  // namespace gradfuse::test
