#pragma once
// What several tests share: tensors of random bits, comparing bits, every target and thread count.
#include <gtest/gtest.h>
#include <gradfuse/backend.hpp>
#include <gradfuse/tensor_view.hpp>

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/device_memory.hpp"

namespace gradfuse::test {

using Random = std::mt19937_64;

/// A whole number in [low, high]; the same on every machine, unlike the standard distributions.
std::int64_t uniform(Random& random, std::int64_t low, std::int64_t high);
/// About normally distributed.
float normal(Random& random);

/// `numel` elements of `dtype` on the device of the tests, `misalignment` elements off a 64-byte boundary, with guard
/// elements on both sides that `guards_are_intact` finds overwritten. The host may look at them at any time: that waits
/// for the device.
class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(DType dtype, std::size_t numel, std::size_t misalignment = 0);
  HostTensor(const HostTensor& other) { *this = other; }
  HostTensor& operator=(const HostTensor& other);
  HostTensor(HostTensor&&) = default;
  HostTensor& operator=(HostTensor&&) = default;

  std::size_t numel() const { return numel_; }
  DType dtype() const { return dtype_; }
  TensorView view() const { return {begin(), numel_, dtype_, memory_.device()}; }
  std::byte* data() const {
    wait_for(memory_.device());
    return begin();
  }

  double get(std::size_t i) const;        ///< exact
  void set(std::size_t i, double value);  ///< rounded to nearest even, by this file's own arithmetic
  std::uint64_t bits(std::size_t i) const;
  void set_bits(std::size_t i, std::uint64_t bits);
  void fill(double value);

  bool guards_are_intact() const;

 private:
  std::byte* begin() const;

  SharedMemory memory_;
  DType dtype_ = DType::kFloat32;
  std::size_t numel_ = 0, misalignment_ = 0;
};

/// Values around 1, with a few zeros, negative zeros, denormals and large ones among them; all finite, also when
/// summed.
HostTensor random_tensor(Random& random, DType dtype, std::size_t numel, std::size_t misalignment = 0);

/// Equal bits, any NaN being equal to any NaN. The failure names the first element that differs, in hex.
testing::AssertionResult same_bits(const HostTensor& got, const HostTensor& expected);

/// What the suites run on: every SIMD target of this machine, with 1, 2 and 7 threads; or a GPU, in the programs that
/// are built for one.
struct Machine {
  std::string target;
  int threads = 1;
  Device device = Device::kCpu;
  std::shared_ptr<const Backend> backend() const;
  /// Why its tests are skipped; empty if it is there.
  std::string why_missing() const;
  friend std::ostream& operator<<(std::ostream& out, const Machine& machine);
};
std::vector<Machine> all_machines();
std::string machine_name(const testing::TestParamInfo<Machine>& info);

inline constexpr DType kGradDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64};

}  // namespace gradfuse::test
