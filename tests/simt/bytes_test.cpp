// What the kernels move: exactly the bytes of the design's table, 16 at a time, in whole sectors.
#include <gtest/gtest.h>
#include <gradfuse/optimizer.hpp>
#include <gradfuse/passes.hpp>
#include <simt/control.hpp>
#include <simt/counters.hpp>

#include "tests/core/training.hpp"

namespace gradfuse::test {
namespace {

/// Bytes that each kernel moves in whole accesses of 16.
struct Expected {
  const char* kernel;
  std::uint64_t launches, loaded, stored;
};

class BytesOnSimt : public testing::Test {
 protected:
  static constexpr std::uint64_t kNumel = 40 * 4096;

  void expect(const Expected& expected) {
    SCOPED_TRACE(expected.kernel);
    const simt::Counters c = simt::counters(expected.kernel);
    EXPECT_EQ(c.launches, expected.launches);
    EXPECT_EQ(c.wide_loads().bytes, expected.loaded);
    EXPECT_EQ(c.wide_stores().bytes, expected.stored);
    // Coalesced: no sector is touched for less than it holds.
    EXPECT_EQ(c.wide_loads().sectors * 32, expected.loaded);
    EXPECT_EQ(c.wide_stores().sectors * 32, expected.stored);
    // The rest is tables and results, a dozen sectors or less a chunk: below 1 % of what passes of 6 bytes an element
    // and more move, and 3 % where 2 bytes are read and nothing is written.
    const std::uint64_t wide = c.wide_loads().sectors + c.wide_stores().sectors;
    const bool is_light = expected.loaded + expected.stored < 6 * kNumel;
    EXPECT_GE(static_cast<double>(wide), (is_light ? 0.97 : 0.99) * static_cast<double>(c.sectors()));
  }

  OnDevice on_device{{Device::Kind::kCuda, 0}};
  std::shared_ptr<const Backend> backend = cuda_backend();
};

class WindowBytes : public BytesOnSimt, public testing::WithParamInterface<DType> {};
INSTANTIATE_TEST_SUITE_P(Gradients, WindowBytes, testing::Values(DType::kFloat16, DType::kBFloat16, DType::kFloat32),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(WindowBytes, AreThoseOfTheDesignsTable) {
  const std::uint64_t grad_size = element_size(GetParam());
  OwnedSet set(backend);
  Random random(1);
  set.add(random_tensor(random, DType::kFloat32, kNumel), DType::kFloat16);
  const HostTensor grad = random_tensor(random, GetParam(), kNumel);
  Window window(set.params, {.steps = 4});
  AdamW optimizer(set.params, {.lr = 1e-3});
  simt::reset_counters();
  for (int i = 0; i < 4; ++i) window.add(std::vector<ConstTensorView>{grad.view()});
  optimizer.step(window, {.max_grad_norm = 1.0});
  EXPECT_FALSE(optimizer.last_report().is_skipped());

  EXPECT_EQ(simt::num_launches(), 4u + 2u);
  expect({"add_kernel", 3, kNumel * (3 * grad_size + 2 * 4), kNumel * 3 * 4});
  expect({"stats_kernel", 1, kNumel * (grad_size + 4), 0});
  expect({"adam_kernel", 1, kNumel * (grad_size + 4 + 12), kNumel * (12 + 2)});
}

TEST_F(BytesOnSimt, AWindowOfOneMicroBatchNeverTouchesTheAccumulator) {
  OwnedSet set(backend);
  Random random(2);
  set.add(random_tensor(random, DType::kFloat32, kNumel), DType::kBFloat16);
  const HostTensor grad = random_tensor(random, DType::kBFloat16, kNumel);
  Window window(set.params, {.steps = 1});
  Sgd optimizer(set.params, {.lr = 1e-3, .momentum = 0.9});
  for (int i = 0; i < 2; ++i) {
    simt::reset_counters();
    window.add(std::vector<ConstTensorView>{grad.view()});
    optimizer.step(window);
    EXPECT_FALSE(optimizer.last_report().is_skipped());
  }
  EXPECT_EQ(simt::num_launches(), 3u);
  expect({"stats_kernel", 1, kNumel * 2, 0});
  expect({"sgd_kernel", 1, kNumel * (2 + 8), kNumel * (8 + 2)});
}

TEST_F(BytesOnSimt, TheNumberOfLaunchesDoesNotDependOnTheNumberOfTensors) {
  OwnedSet set(backend);
  for (int t = 0; t < 500; ++t) set.add(HostTensor(DType::kFloat32, 70), DType::kFloat16);
  const std::vector<HostTensor> grads = set.zero_grads(DType::kFloat16);
  Window window(set.params, {.steps = 8});
  AdamW optimizer(set.params, {.lr = 1e-3});
  simt::reset_counters();
  for (int i = 0; i < 8; ++i) window.add(views_of(grads));
  optimizer.step(window);
  (void)optimizer.last_report();
  EXPECT_EQ(simt::num_launches(), 8u + 2u);
}

TEST_F(BytesOnSimt, TheUnfusedPassesMoveWhatTheirTableSays) {
  HostTensor a(DType::kFloat32, kNumel), b(DType::kFloat32, kNumel), half(DType::kFloat16, kNumel);
  const TensorList list_a({a.view()}, backend), list_b({b.view()}, backend), list_half({half.view()}, backend);
  simt::reset_counters();
  zero(list_a);
  cast(list_a, list_half);
  axpby(2.0f, list_half, 1.0f, list_a, list_b);
  EXPECT_EQ(inf_norm(list_b), 0.0);
  EXPECT_EQ(l2_norm(list_b), 0.0);
  expect({"zero_kernel", 1, 0, kNumel * 4});
  expect({"scale_kernel", 1, kNumel * 4, kNumel * 2});
  expect({"axpby_kernel", 1, kNumel * 6, kNumel * 4});
  expect({"max_magnitude_kernel", 1, kNumel * 4, 0});
  expect({"stats_kernel", 1, kNumel * 4, 0});
}

}  // namespace
}  // namespace gradfuse::test
