#pragma once
// What several tests share: tensors of random bits in host memory, comparing bits, every target and thread count.
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

namespace gradfuse::test {

using Random = std::mt19937_64;

/// A whole number in [low, high]; the same on every machine, unlike the standard distributions.
std::int64_t uniform(Random& random, std::int64_t low, std::int64_t high);
/// About normally distributed.
float normal(Random& random);

/// `numel` elements of `dtype`, `misalignment` elements off a 64-byte boundary, with guard elements on both sides that
/// `check_guards` finds overwritten.
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
  TensorView view() const { return {data(), numel_, dtype_, Device::kCpu}; }
  std::byte* data() const;

  double get(std::size_t i) const;        ///< exact
  void set(std::size_t i, double value);  ///< rounded to nearest even, by this file's own arithmetic
  std::uint64_t bits(std::size_t i) const;
  void set_bits(std::size_t i, std::uint64_t bits);
  void fill(double value);

  bool guards_are_intact() const;

 private:
  std::vector<std::byte> storage_;
  DType dtype_ = DType::kFloat32;
  std::size_t numel_ = 0, misalignment_ = 0;
};

/// Values around 1, with a few zeros, negative zeros, denormals and large ones among them; all finite, also when
/// summed.
HostTensor random_tensor(Random& random, DType dtype, std::size_t numel, std::size_t misalignment = 0);

/// Equal bits, any NaN being equal to any NaN. The failure names the first element that differs, in hex.
testing::AssertionResult same_bits(const HostTensor& got, const HostTensor& expected);

/// What the suites run on: every SIMD target of this machine, with 1, 2 and 7 threads.
struct Machine {
  std::string target;
  int threads = 1;
  std::shared_ptr<const Backend> backend() const { return cpu_backend({.threads = threads, .target = target}); }
  friend std::ostream& operator<<(std::ostream& out, const Machine& machine);
};
std::vector<Machine> all_machines();
std::string machine_name(const testing::TestParamInfo<Machine>& info);

inline constexpr DType kGradDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64};

}  // namespace gradfuse::test
