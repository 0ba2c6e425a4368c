#include "tests/support.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gradfuse::test {
namespace {
constexpr std::size_t kGuard = 128;  // bytes on either side
constexpr std::byte kGuardByte{0xA5};

/// A binary format, by its numbers.
struct Format {
  int mantissa_bits, min_exponent, max_exponent;
};
constexpr Format kHalf{10, -14, 15}, kBrain{7, -126, 127};

/// Rounds to the format's grid by scaling, unlike the library, which works on the bits.
double round_to(Format format, double value) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.min_exponent);
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) >= std::ldexp(1.0, format.max_exponent + 1)
             ? std::copysign(std::numeric_limits<double>::infinity(), value)
             : rounded;
}
std::uint64_t encode(Format format, double value, int total_bits) {
  const auto sign = static_cast<std::uint64_t>(std::signbit(value)) << (total_bits - 1);
  const std::uint64_t top = (std::uint64_t{1} << (total_bits - 1 - format.mantissa_bits)) - 1;
  if (std::isnan(value)) return sign | (top << format.mantissa_bits) | (1u << (format.mantissa_bits - 1));
  const double rounded = std::fabs(round_to(format, value));
  if (std::isinf(rounded)) return sign | (top << format.mantissa_bits);
  const int exponent = rounded == 0.0 ? format.min_exponent : std::max(std::ilogb(rounded), format.min_exponent);
  // Units of the last place: for normal numbers the implicit one adds 1 to the exponent field by itself.
  const auto units = static_cast<std::uint64_t>(std::ldexp(rounded, format.mantissa_bits - exponent));
  const auto field = static_cast<std::uint64_t>(exponent - format.min_exponent);
  return sign | ((field << format.mantissa_bits) + units);
}
double decode(Format format, std::uint64_t bits, int total_bits) {
  const bool negative = (bits >> (total_bits - 1)) & 1;
  const std::uint64_t top = (std::uint64_t{1} << (total_bits - 1 - format.mantissa_bits)) - 1;
  const std::uint64_t field = (bits >> format.mantissa_bits) & top;
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << format.mantissa_bits) - 1);
  double value;
  if (field == top) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    const std::uint64_t implicit = field == 0 ? 0 : std::uint64_t{1} << format.mantissa_bits;
    const int exponent = static_cast<int>(field == 0 ? 1 : field) - 1 + format.min_exponent;
    value = std::ldexp(static_cast<double>(implicit + mantissa), exponent - format.mantissa_bits);
  }
  return negative ? -value : value;
}
}  // namespace

std::int64_t uniform(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}
float normal(Random& random) {
  double sum = 0.0;
  for (int i = 0; i < 4; ++i) sum += static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  return static_cast<float>(sum * std::sqrt(3.0));
}

HostTensor::HostTensor(DType dtype, std::size_t numel, std::size_t misalignment)
    : memory_(64 + 2 * kGuard + (numel + misalignment) * element_size(dtype)),
      dtype_(dtype),
      numel_(numel),
      misalignment_(misalignment) {
  std::fill_n(memory_.data(), memory_.num_bytes(), kGuardByte);
  std::memset(begin(), 0, numel * element_size(dtype));
}
HostTensor& HostTensor::operator=(const HostTensor& other) {
  if (this == &other) return *this;
  if (other.memory_.data() == nullptr) return *this = HostTensor();
  HostTensor copy(other.dtype_, other.numel_, other.misalignment_);
  std::memcpy(copy.data(), other.data(), other.numel_ * element_size(other.dtype_));
  return *this = std::move(copy);
}
std::byte* HostTensor::begin() const {
  if (memory_.data() == nullptr) return nullptr;
  const std::size_t past = (reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard) % 64;
  return memory_.data() + kGuard + (past == 0 ? 0 : 64 - past) + misalignment_ * element_size(dtype_);
}
std::uint64_t HostTensor::bits(std::size_t i) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data() + i * element_size(dtype_), element_size(dtype_));
  return bits;
}
void HostTensor::set_bits(std::size_t i, std::uint64_t bits) {
  std::memcpy(data() + i * element_size(dtype_), &bits, element_size(dtype_));
}
double HostTensor::get(std::size_t i) const {
  switch (dtype_) {
    case DType::kFloat32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits(i)));
    case DType::kFloat64: return std::bit_cast<double>(bits(i));
    case DType::kFloat16: return decode(kHalf, bits(i), 16);
    case DType::kBFloat16: return decode(kBrain, bits(i), 16);
  }
  return 0.0;
}
void HostTensor::set(std::size_t i, double value) {
  switch (dtype_) {
    case DType::kFloat32: return set_bits(i, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    case DType::kFloat64: return set_bits(i, std::bit_cast<std::uint64_t>(value));
    case DType::kFloat16: return set_bits(i, encode(kHalf, value, 16));
    case DType::kBFloat16: return set_bits(i, encode(kBrain, value, 16));
  }
}
void HostTensor::fill(double value) {
  for (std::size_t i = 0; i < numel_; ++i) set(i, value);
}
bool HostTensor::guards_are_intact() const {
  const std::byte* begin = data();
  const std::byte* end = begin + numel_ * element_size(dtype_);
  for (const std::byte* at = memory_.data(); at != memory_.data() + memory_.num_bytes(); ++at) {
    if ((at < begin || at >= end) && *at != kGuardByte) return false;
  }
  return true;
}

HostTensor random_tensor(Random& random, DType dtype, std::size_t numel, std::size_t misalignment) {
  HostTensor tensor(dtype, numel, misalignment);
  for (std::size_t i = 0; i < numel; ++i) {
    double value = normal(random);
    switch (uniform(random, 0, 31)) {
      case 0: value = 0.0; break;
      case 1: value = -0.0; break;
      case 2: value *= dtype == DType::kFloat16 ? 0x1p-20 : 0x1p-140; break;  // denormal in the type, or nearly
      case 3: value *= dtype == DType::kFloat16 ? 100.0 : 0x1p40; break;
      default: break;
    }
    tensor.set(i, value);
  }
  return tensor;
}

testing::AssertionResult same_bits(const HostTensor& got, const HostTensor& expected) {
  if (got.dtype() != expected.dtype() || got.numel() != expected.numel()) {
    return testing::AssertionFailure() << "dtype or size differ";
  }
  for (std::size_t i = 0; i < got.numel(); ++i) {
    if (got.bits(i) == expected.bits(i)) continue;
    if (std::isnan(got.get(i)) && std::isnan(expected.get(i))) continue;
    return testing::AssertionFailure() << fmt::format("element {} of {} ({}): got {:#x} ({}), expected {:#x} ({})", i,
                                                      got.numel(), dtype_name(got.dtype()), got.bits(i), got.get(i),
                                                      expected.bits(i), expected.get(i));
  }
  return testing::AssertionSuccess();
}

std::ostream& operator<<(std::ostream& out, const Machine& machine) {
  return out << machine.target << " with " << machine.threads << " threads";
}
std::shared_ptr<const Backend> Machine::backend() const {
  return device.kind == Device::Kind::kCuda ? cuda_backend({.device = device.index, .stream = nullptr})
                                            : cpu_backend({.threads = threads, .target = target});
}
std::string Machine::why_missing() const { return device.kind == Device::Kind::kCuda ? why_no_cuda() : ""; }
std::vector<Machine> all_machines() {
#if GRADFUSE_TEST_CUDA
  return {{"cuda", 1, {Device::Kind::kCuda, 0}}};
#else
  std::vector<Machine> machines;
  for (const std::string& target : cpu_targets()) {
    for (const int threads : {1, 2, 7}) machines.push_back({target, threads});
  }
  return machines;
#endif
}
std::string machine_name(const testing::TestParamInfo<Machine>& info) {
  return fmt::format("{}_{}threads", info.param.target, info.param.threads);
}

}  // namespace gradfuse::test
