// Producers that write the accumulator themselves, as a GEMM with beta 0 or 1 does.
#include <cmath>
#include <limits>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

using WindowClaimOn = OnEveryMachine;
INSTANTIATE_TEST_SUITE_P(EveryMachine, WindowClaimOn, testing::ValuesIn(all_machines()), machine_name);

constexpr std::size_t kNumel = 4100;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

HostTensor filled(double value) { return tensor_of(DType::kFloat32, std::vector<double>(kNumel, value)); }

struct ClaimOn {
  explicit ClaimOn(std::shared_ptr<const Backend> backend, std::size_t steps, DType accumulate = DType::kFloat32)
      : set(std::move(backend)),
        window((set.add(filled(0.0)), set.add(filled(0.0)), set.params),
               {.steps = steps, .accumulate = accumulate, .fixed_total = 1.0}) {}

  /// What a GEMM does with beta = 0 or 1.
  void produce(std::size_t tensor, double value) {
    const AccumulatorSlot slot = window.claim(tensor);
    ASSERT_EQ(slot.view.numel, kNumel);
    ASSERT_EQ(slot.view.dtype, window.options().accumulate);
    HostTensor acc = copy_of(slot.view);
    for (std::size_t i = 0; i < kNumel; ++i) {
      acc.set(i, slot.position == WindowPosition::kFirst ? value : acc.get(i) + value);
    }
    copy_tensor(slot.view, acc.view());
  }
  void end_micro_batch() { window.add(std::vector<Gradient>{}); }
  double value(std::size_t tensor) const { return -set.param[tensor].get(kNumel - 1); }

  OwnedSet set;
  Window window;
  Sgd optimizer{set.params, {.lr = 1.0}};
};

TEST_P(WindowClaimOn, TheFirstClaimOfAWindowAssignsAndLaterOnesAdd) {
  for (const DType accumulate : {DType::kFloat32, DType::kFloat64}) {
    ClaimOn run(backend, 3, accumulate);
    for (int window = 0; window < 2; ++window) {
      run.set.param[0].fill(0.0);
      for (const double value : {1.0, 2.0, 4.0}) {
        EXPECT_EQ(run.window.micro_batches() == 0, run.window.accumulator(0).is_absent());
        run.produce(0, value);
        EXPECT_FALSE(run.window.accumulator(0).is_absent());
        run.end_micro_batch();
      }
      EXPECT_TRUE(run.window.is_full());
      run.optimizer.step(run.window);
      EXPECT_EQ(run.value(0), 7.0) << "window " << window;
      EXPECT_EQ(run.optimizer.step_count(0), window + 1);
      EXPECT_EQ(run.optimizer.step_count(1), 0) << "it was not claimed";
      EXPECT_TRUE(run.window.accumulator(0).is_absent());
    }
  }
}

TEST_P(WindowClaimOn, TwoClaimsOfOneMicroBatchAddUp) {
  ClaimOn run(backend, 1);
  run.produce(0, 1.0);
  run.produce(0, 2.0);  // a tied weight
  run.end_micro_batch();
  run.optimizer.step(run.window);
  EXPECT_EQ(run.value(0), 3.0);
}

TEST_P(WindowClaimOn, ClaimsAndAddsMixInEveryOrder) {
  const HostTensor eight = filled(8.0);
  for (unsigned claimed = 0; claimed < 8; ++claimed) {  // bit b: micro-batch b claims, else it adds
    SCOPED_TRACE(testing::Message() << "claimed in " << claimed);
    ClaimOn run(backend, 3);
    for (unsigned b = 0; b < 3; ++b) {
      if (claimed >> b & 1) {
        run.produce(0, 1.0);
        run.window.add(std::vector<Gradient>{{1, eight.view()}});  // the other tensor gives its gradient
      } else {
        run.window.add(std::vector<ConstTensorView>{eight.view(), eight.view()});
      }
    }
    run.optimizer.step(run.window);
    const double claims = (claimed & 1) + (claimed >> 1 & 1) + (claimed >> 2 & 1);
    EXPECT_EQ(run.value(0), claims + 8.0 * (3.0 - claims));
    EXPECT_EQ(run.value(1), 24.0);
  }
}

TEST_P(WindowClaimOn, AClaimAndAGradientForOneTensorInOneMicroBatchAddUp) {
  const HostTensor two = filled(2.0);
  for (const std::size_t steps : {1, 2}) {  // pending, and merged
    ClaimOn run(backend, steps);
    run.produce(0, 1.0);
    run.window.add(std::vector<Gradient>{{0, two.view()}}, {.weight = 3.0});
    run.optimizer.step(run.window);
    EXPECT_EQ(run.value(0), 7.0);
  }
}

TEST_P(WindowClaimOn, APoisonedAccumulatorIsMarkedFirstAgainAfterADiscardAndAfterAStep) {
  ClaimOn run(backend, 2);
  run.produce(0, kNan);
  run.window.discard();
  EXPECT_EQ(run.window.claim(0).position, WindowPosition::kFirst);
  run.window.discard();
  run.produce(0, kNan);
  run.end_micro_batch();
  run.optimizer.step(run.window);
  EXPECT_EQ(run.optimizer.last_report().outcome, StepOutcome::kNonFinite);
  run.produce(0, 5.0);
  run.end_micro_batch();
  run.optimizer.step(run.window);
  EXPECT_EQ(run.value(0), 5.0);
}

TEST_P(WindowClaimOn, AValueNotFiniteOfAProducerIsReportedWithoutAMicroBatch) {
  for (const double value : {kInf, -kInf, kNan}) {
    ClaimOn run(backend, 2);
    run.produce(0, 1.0);
    run.produce(1, value);
    run.end_micro_batch();
    run.produce(0, 1.0);
    run.end_micro_batch();
    run.optimizer.step(run.window);
    const StepReport& report = run.optimizer.last_report();
    ASSERT_EQ(report.outcome, StepOutcome::kNonFinite);
    ASSERT_TRUE(report.non_finite.has_value());
    EXPECT_EQ(report.non_finite->tensor, 1u);
    EXPECT_EQ(report.non_finite->micro_batch, std::nullopt);
  }
}

TEST_P(WindowClaimOn, ATensorThatJoinsMayBeClaimedAtOnceAndOldSegmentsStay) {
  ClaimOn run(backend, 2);
  run.produce(0, 1.0);
  const void* before = run.window.accumulator(0).data;
  run.set.add(filled(0.0));
  run.produce(2, 4.0);
  EXPECT_EQ(run.window.accumulator(0).data, before);
  run.end_micro_batch();
  run.produce(2, 8.0);
  run.end_micro_batch();
  run.optimizer.step(run.window);
  EXPECT_EQ(run.value(0), 1.0);
  EXPECT_EQ(run.value(2), 12.0);
}

}  // namespace
}  // namespace gradfuse::test
