// What a window accumulates, probed by SGD with a learning rate of 1 from zero: the parameter is then minus the value.
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using WindowAddOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, WindowAddOn, testing::ValuesIn(all_machines()), machine_name);

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kNumel = 40003;  // ten chunks, which are enough work for several threads, and a tail

/// One tensor of zeros; `value()` is what the last step applied, exactly where the total is a power of two.
struct Probe {
  Probe(std::shared_ptr<const Backend> backend, const WindowOptions& options, std::size_t numel = kNumel)
      : set(std::move(backend)), window((set.add(HostTensor(DType::kFloat32, numel)), set.params), options) {}

  void add(const HostTensor& grad, const MicroBatch& micro_batch = {}) {
    const ConstTensorView views[] = {grad.view()};
    window.add(views, micro_batch);
  }
  const HostTensor& value() {
    set.param[0].fill(0.0);
    optimizer.step(window);
    for (std::size_t i = 0; i < set.param[0].numel(); ++i) set.param[0].set(i, -set.param[0].get(i));
    return set.param[0];
  }
  /// Fills the accumulator with NaN and forgets it.
  void poison() {
    HostTensor nan(window.options().accumulate, set.param[0].numel());
    nan.fill(kNan);
    copy_tensor(window.claim(0).view, nan.view());
    window.discard();
  }

  OwnedSet set;
  Window window;
  Sgd optimizer{set.params, {.lr = 1.0}};
};

TEST_P(WindowAddOn, TheFirstMicroBatchAssignsOverAPoisonedAccumulator) {
  Random random(1);
  for (const DType accumulate : {DType::kFloat32, DType::kFloat64}) {
    for (const DType dtype : kGradDTypes) {
      const HostTensor grad = moderate_tensor(random, dtype, kNumel);
      const HostTensor zeros(dtype, kNumel);
      HostTensor expected(DType::kFloat32, kNumel);
      for (std::size_t i = 0; i < kNumel; ++i) expected.set(i, static_cast<float>(grad.get(i)));
      Probe probe(backend, {.steps = 2, .accumulate = accumulate, .fixed_total = 1.0});
      probe.poison();
      EXPECT_TRUE(probe.window.accumulator(0).is_absent());
      probe.add(grad);
      if (accumulate == DType::kFloat32) {
        EXPECT_TRUE(same_bits(copy_of(probe.window.accumulator(0)), expected));
      }
      probe.add(zeros);
      EXPECT_TRUE(same_bits(probe.value(), expected)) << dtype_name(dtype) << " into " << dtype_name(accumulate);
    }
  }
}

TEST_P(WindowAddOn, EveryWindowBeginsAfresh) {
  Random random(2);
  Probe probe(backend, {.steps = 3, .fixed_total = 1.0});
  for (int window = 0; window < 3; ++window) {
    const HostTensor grad = tensor_of(DType::kFloat32, std::vector<double>(kNumel, window + 1.0));
    for (int b = 0; b < 3; ++b) probe.add(grad);
    EXPECT_TRUE(same_bits(probe.value(), tensor_of(DType::kFloat32, std::vector<double>(kNumel, 3.0 * (window + 1)))));
  }
}

TEST_P(WindowAddOn, ManyBFloat16GradientsSumWithinARoundingEach) {
  Random random(3);
  for (const std::size_t num : {1, 2, 7, 64}) {
    SCOPED_TRACE(testing::Message() << num << " micro-batches");
    Probe probe(backend, {.steps = num, .fixed_total = 1.0}, 1000);
    std::vector<HostTensor> grads;
    for (std::size_t b = 0; b < num; ++b) grads.push_back(random_tensor(random, DType::kBFloat16, 1000));
    for (const HostTensor& grad : grads) probe.add(grad);
    const HostTensor& value = probe.value();
    for (std::size_t i = 0; i < value.numel(); ++i) {
      double sum = 0.0, magnitudes = 0.0;
      for (const HostTensor& grad : grads) {
        sum += grad.get(i);
        magnitudes += std::fabs(grad.get(i));
      }
      // Each later add rounds once, by at most 2^-24 of the partial sum, which is at most the sum of magnitudes; below
      // the normal range by half of 2^-149. The FP64 sum is off by far less.
      const double bound = static_cast<double>(num) * (0x1p-24 * magnitudes + 0x1p-150);
      ASSERT_LE(std::fabs(value.get(i) - sum), bound) << "element " << i;
    }
  }
}

TEST_P(WindowAddOn, OneBFloat16GradientIsTakenAsItIs) {
  Random random(4);
  const HostTensor grad = random_tensor(random, DType::kBFloat16, kNumel);
  Probe probe(backend, {});
  probe.add(grad);
  const HostTensor& value = probe.value();
  for (std::size_t i = 0; i < kNumel; ++i) ASSERT_EQ(value.get(i), grad.get(i)) << i;
}

TEST_P(WindowAddOn, AFloat64AccumulatorRoundsOnlyAtTheEnd) {
  Random random(5);
  Probe probe(backend, {.steps = 7, .accumulate = DType::kFloat64, .fixed_total = 1.0});
  std::vector<HostTensor> grads;
  for (int b = 0; b < 7; ++b) grads.push_back(moderate_tensor(random, DType::kFloat32, kNumel));
  std::vector<double> sum(kNumel);
  for (const HostTensor& grad : grads) {
    probe.add(grad);
    for (std::size_t i = 0; i < kNumel; ++i) sum[i] += grad.get(i);
  }
  EXPECT_TRUE(same_bits(probe.value(), tensor_of(DType::kFloat32, sum)));
}

TEST_P(WindowAddOn, AWindowMayEndBeforeItIsFull) {
  for (const bool is_told : {true, false}) {
    Probe probe(backend, {.steps = 8});
    const HostTensor one = tensor_of(DType::kFloat16, std::vector<double>(kNumel, 1.0));
    const HostTensor three = tensor_of(DType::kFloat16, std::vector<double>(kNumel, 3.0));
    probe.add(one);
    probe.add(three, {.is_last = is_told});
    EXPECT_EQ(probe.window.is_full(), is_told);
    EXPECT_EQ(probe.window.micro_batches(), 2u);
    EXPECT_TRUE(same_bits(probe.value(), tensor_of(DType::kFloat32, std::vector<double>(kNumel, 2.0))));
    EXPECT_EQ(probe.optimizer.last_report().micro_batches, 2u);
    EXPECT_EQ(probe.optimizer.last_report().total_count, 2.0);
    EXPECT_EQ(probe.window.micro_batches(), 0u);
    EXPECT_FALSE(probe.window.is_full());
  }
}

TEST_P(WindowAddOn, TheLastMicroBatchStaysPendingAndTheAccumulatorViewLeavesItOut) {
  Probe probe(backend, {.steps = 2, .fixed_total = 1.0}, 3);
  const HostTensor grad = tensor_of(DType::kFloat16, {1.0, 2.0, 3.0});
  EXPECT_TRUE(probe.window.accumulator(0).is_absent());
  probe.add(grad, {.weight = 2.0});
  probe.add(grad, {.weight = 4.0});
  EXPECT_TRUE(probe.window.is_full());
  EXPECT_EQ(probe.window.accumulator(0).numel, 3u);
  EXPECT_TRUE(same_bits(copy_of(probe.window.accumulator(0)), tensor_of(DType::kFloat32, {2.0, 4.0, 6.0})));
  EXPECT_TRUE(same_bits(probe.value(), tensor_of(DType::kFloat32, {6.0, 12.0, 18.0})));
  EXPECT_TRUE(probe.window.accumulator(0).is_absent());
}

TEST_P(WindowAddOn, DiscardForgetsMergedAndPendingGradients) {
  Probe probe(backend, {.steps = 2}, 2);
  const HostTensor bad = tensor_of(DType::kFloat32, {kNan, kNan}), good = tensor_of(DType::kFloat32, {1.0, 2.0});
  probe.add(bad);
  probe.add(bad);
  probe.window.discard();
  EXPECT_EQ(probe.window.micro_batches(), 0u);
  EXPECT_EQ(probe.window.total_count(), 0.0);
  probe.add(good);
  probe.add(good);
  EXPECT_TRUE(same_bits(probe.value(), good));
  EXPECT_EQ(probe.optimizer.last_report().outcome, StepOutcome::kApplied);
  EXPECT_EQ(probe.optimizer.last_report().window, 0u) << "a discarded window is none of the optimizer's";
}

TEST_P(WindowAddOn, GradientMemoryMayDifferFromOneMicroBatchToTheNext) {
  Probe probe(backend, {.steps = 3, .fixed_total = 1.0}, 2);
  probe.add(tensor_of(DType::kFloat16, {1.0, 10.0}));  // gone after the call: it was merged
  probe.add(tensor_of(DType::kBFloat16, {2.0, 20.0}));
  const HostTensor last = tensor_of(DType::kFloat64, {4.0, 40.0});
  probe.add(last);
  EXPECT_TRUE(same_bits(probe.value(), tensor_of(DType::kFloat32, {7.0, 70.0})));
}

}  // namespace
}  // namespace gradfuse::test
