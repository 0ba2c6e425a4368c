#pragma once
// Small set-ups for tests of training: a set with its memory, snapshots of all that a step may change, error messages.
#include <gmock/gmock.h>

#include <gradfuse/error.hpp>
#include <gradfuse/optimizer.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support.hpp"

namespace gradfuse::test {

HostTensor tensor_of(DType dtype, const std::vector<double>& values);
HostTensor copy_of(const ConstTensorView& view);
/// `numel` elements of a tensor, from the `first` on.
TensorView part_of(const TensorView& view, std::size_t first, std::size_t numel);
std::vector<ConstTensorView> views_of(const std::vector<HostTensor>& tensors);
/// Views outlive a temporary.
std::vector<ConstTensorView> views_of(std::vector<HostTensor>&&) = delete;
/// Magnitudes in [0.5, 2), random signs: no quotient of two of them is large, so error bounds stay short.
HostTensor moderate_tensor(Random& random, DType dtype, std::size_t numel);

/// A parameter set and the memory behind it.
struct OwnedSet {
  explicit OwnedSet(std::shared_ptr<const Backend> backend = cpu_backend({.threads = 2, .target = {}}))
      : params(std::move(backend)) {}
  /// Named "t0", "t1" and so on.
  std::size_t add(HostTensor master, std::optional<DType> copy = std::nullopt, std::size_t group = 0);
  std::vector<HostTensor> zero_grads(DType dtype = DType::kFloat32) const;

  ParameterSet params;
  std::vector<HostTensor> param, model;  // by tensor; a model of no elements: none
};

/// All that a step may change, by name.
struct Snapshot {
  std::vector<std::string> names;
  std::vector<HostTensor> tensors;
  std::vector<std::int64_t> step_counts;
};
Snapshot snapshot(const OwnedSet& set, Optimizer& optimizer);
testing::AssertionResult same(const Snapshot& got, const Snapshot& expected);

/// A window of one micro-batch.
const StepReport& step_on(Window& window, Optimizer& optimizer, const std::vector<HostTensor>& grads,
                          const StepOptions& options = {});

/// Matches a callable that throws an `Error` with all of these in its message.
template <class... Parts>
auto throws_saying(const Parts&... parts) {
  return testing::ThrowsMessage<Error>(testing::AllOf(testing::HasSubstr(parts)...));
}

/// For tests that run on every SIMD target and thread count, and on a GPU.
class OnEveryMachine : public testing::TestWithParam<Machine> {
 protected:
  void SetUp() override {
    if (const std::string reason = GetParam().why_missing(); !reason.empty()) GTEST_SKIP() << reason;
    backend = GetParam().backend();
  }

  OnDevice on_device{GetParam().device};
  std::shared_ptr<const Backend> backend;
};

}  // namespace gradfuse::test
