// After its first window a training loop costs N + 2 passes a window and not one allocation, for any number of tensors.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <gradfuse/optimizer.hpp>

#include <vector>

#include "src/backend/backend.hpp"
#include "tests/steady_state/counted_new.hpp"

namespace gradfuse {
namespace {

struct PassCounts {
  int add = 0, stats = 0, step = 0, other = 0;
  int total() const { return add + stats + step + other; }
};

class CountingMemory final : public DeviceMemory {
 public:
  Buffer allocate(std::size_t num_bytes) const override {
    ++num_allocations;
    return inner_.allocate(num_bytes);
  }
  std::unique_ptr<Readback> make_readback(std::size_t num_bytes) const override {
    ++num_allocations;
    return inner_.make_readback(num_bytes);
  }
  void clear(void* to, std::size_t num_bytes) const override { inner_.clear(to, num_bytes); }
  void copy(void* to, const void* from, std::size_t num_bytes) const override { inner_.copy(to, from, num_bytes); }
  void upload(void* to, const void* from, std::size_t num_bytes) const override { inner_.upload(to, from, num_bytes); }
  void download(void* to, const void* from, std::size_t num_bytes) const override {
    inner_.download(to, from, num_bytes);
  }
  void wait() const override { inner_.wait(); }
  const char* why_unreachable(const void* data) const override { return inner_.why_unreachable(data); }

 private:
  const DeviceMemory& inner_ = host_memory();
};

class CountingBackend final : public Backend {
 public:
  explicit CountingBackend(PassCounts& counts) : counts_(counts) {}
  BackendInfo info() const override { return inner_->info(); }
  Device device() const override { return inner_->device(); }
  const DeviceMemory& memory() const override { return memory_; }
  std::unique_ptr<WorkTable> make_work_table(std::span<const std::size_t> numels) const override {
    return inner_->make_work_table(numels);
  }
  std::unique_ptr<Stopwatch> make_stopwatch() const override { return inner_->make_stopwatch(); }
  void add(const AddPass& pass) const override { ++counts_.add, inner_->add(pass); }
  void stats(const StatsPass& pass) const override { ++counts_.stats, inner_->stats(pass); }
  void fold_sums(const WorkTable& table, const Sums& sums) const override {
    ++counts_.other, inner_->fold_sums(table, sums);
  }
  void adam(const AdamPass& pass) const override { ++counts_.step, inner_->adam(pass); }
  void sgd(const SgdPass& pass) const override { ++counts_.step, inner_->sgd(pass); }
  void zero(const WorkTable& table, std::span<const TensorView> out) const override {
    ++counts_.other, inner_->zero(table, out);
  }
  void scale(const WorkTable& table, float factor, std::span<const ConstTensorView> in, std::span<const TensorView> out,
             bool* found_nonfinite) const override {
    ++counts_.other, inner_->scale(table, factor, in, out, found_nonfinite);
  }
  void axpby(const WorkTable& table, float a, std::span<const ConstTensorView> x, float b,
             std::span<const ConstTensorView> y, std::span<const TensorView> out) const override {
    ++counts_.other, inner_->axpby(table, a, x, b, y, out);
  }
  double max_magnitude(const WorkTable& table, std::span<const ConstTensorView> x) const override {
    return ++counts_.other, inner_->max_magnitude(table, x);
  }

 private:
  PassCounts& counts_;
  CountingMemory memory_;
  std::shared_ptr<const Backend> inner_ = cpu_backend();
};

struct Case {
  std::size_t num_tensors, numel, steps;
};
class SteadyState : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SteadyState,
                         testing::Values(Case{1, 100'000, 1}, Case{1, 100'000, 4}, Case{3000, 64, 4},
                                         Case{7, 10'001, 16}),
                         [](const auto& info) {
                           return fmt::format("{}tensors_{}steps", info.param.num_tensors, info.param.steps);
                         });

TEST_P(SteadyState, AWindowIsNPlusTwoPassesAndNoAllocation) {
  const auto [num_tensors, numel, steps] = GetParam();
  PassCounts counts;
  ParameterSet params(std::make_shared<CountingBackend>(counts));
  std::vector<std::vector<float>> param(num_tensors, std::vector<float>(numel, 1.0f));
  std::vector<std::vector<BFloat16>> model(num_tensors, std::vector<BFloat16>(numel));
  std::vector<std::vector<Float16>> grad(num_tensors, std::vector<Float16>(numel, Float16{0x3c00}));
  std::vector<ConstTensorView> grads;
  for (std::size_t t = 0; t < num_tensors; ++t) {
    params.add({.name = fmt::format("t{}", t), .param = view_of(param[t]), .model = view_of(model[t])});
    grads.push_back(view_of(grad[t]));
  }
  Window window(params, {.steps = steps});
  AdamW optimizer(params, {.lr = 1e-3});
  LossScaler scaler;
  for (int i = 0; i < 4; ++i) {
    counts = {};
    num_allocations = 0;
    for (std::size_t b = 0; b < steps; ++b) window.add(grads, {.weight = 2.0});
    optimizer.step(window, {.max_grad_norm = 1.0, .scaler = &scaler});
    const std::size_t allocations = num_allocations;
    EXPECT_FALSE(optimizer.last_report().is_skipped());
    EXPECT_EQ(counts.add, static_cast<int>(steps) - 1);
    EXPECT_EQ(counts.stats, 1);
    EXPECT_EQ(counts.step, 1);  // control and update
    EXPECT_EQ(counts.total() + 1, static_cast<int>(steps) + 2);
    if (i > 0) {
      EXPECT_EQ(allocations, 0u) << "window " << i;
    }
  }
}

}  // namespace
}  // namespace gradfuse
