#include "src/workload/synthetic_model.hpp"

#include <cstdint>

#include "src/backend/backend.hpp"

namespace gradfuse::workload {
namespace {

constexpr std::size_t kCacheLine = 64;
// Neither overflows nor becomes denormal: 16 gradients of 2^10 add up to 2^14; parameters move by `lr` a step.
constexpr int kGradExponent = 9, kParamExponent = -6;

std::uint64_t random_bits(std::uint64_t index) {  // splitmix64: no state, so any thread can start anywhere
  std::uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Writes floats of type `Bits`, an integer of the same size, with so many mantissa bits.
template <class Bits>
void fill_bits(const TensorView& view, int mantissa_bits, int biased_exponent, int threads) {
  auto* out = static_cast<Bits*>(view.data);
  const auto numel = static_cast<std::int64_t>(view.numel);
  const Bits sign_and_mantissa =
      static_cast<Bits>((Bits{1} << (8 * sizeof(Bits) - 1)) | ((Bits{1} << mantissa_bits) - 1));
  const auto exponent = static_cast<Bits>(static_cast<Bits>(biased_exponent) << mantissa_bits);
#pragma omp parallel for num_threads(threads) schedule(static)
  for (std::int64_t i = 0; i < numel; ++i) {
    const auto random = static_cast<Bits>(random_bits(static_cast<std::uint64_t>(i)));
    out[i] = static_cast<Bits>((random & sign_and_mantissa) | exponent);
  }
}

std::size_t padded(std::size_t numel, DType dtype) {
  const std::size_t unit = kCacheLine / element_size(dtype);
  return (numel + unit - 1) / unit * unit;
}

std::size_t padded_numel(const TensorShapes& tensors, DType dtype) {
  std::size_t numel = 0;
  for (const TensorShape& tensor : tensors) numel += padded(tensor.numel(), dtype);
  return numel;
}

}  // namespace

void fill(const TensorView& view, int exponent, int threads) {
  switch (view.dtype) {
    case DType::kFloat32: return fill_bits<std::uint32_t>(view, 23, exponent + 127, threads);
    case DType::kFloat16: return fill_bits<std::uint16_t>(view, 10, exponent + 15, threads);
    case DType::kBFloat16: return fill_bits<std::uint16_t>(view, 7, exponent + 127, threads);
    case DType::kFloat64: return fill_bits<std::uint64_t>(view, 52, exponent + 1023, threads);
  }
}

FlatArray::FlatArray(const TensorShapes& tensors, DType dtype, const Backend& backend) {
  const std::size_t numel = padded_numel(tensors, dtype);
  const std::size_t num_bytes = numel * element_size(dtype);
  std::byte* next = nullptr;
  if (backend.device() == Device::kCpu) {
    next = host_memory_.emplace(num_bytes).data();
  } else {
    device_memory_ = backend.memory().allocate(num_bytes);
    next = device_memory_.as<std::byte>();
  }
  whole_ = {next, numel, dtype, backend.device()};
  for (const TensorShape& tensor : tensors) {
    views_.push_back({next, tensor.numel(), dtype, backend.device()});
    next += padded(tensor.numel(), dtype) * element_size(dtype);
  }
}

FlatArray::FlatArray(const TensorShapes& tensors, DType dtype, const Backend& backend, int exponent)
    : FlatArray(tensors, dtype, backend) {
  if (host_memory_) {
    fill(whole_, exponent, describe(backend).threads);
    return;
  }
  HugePages made(whole_.num_bytes());
  fill({made.data(), whole_.numel, dtype}, exponent, describe(*cpu_backend()).threads);
  copy_from_host(backend, made.data(), whole_);
}

std::optional<DType> usual_model_dtype(DType grad_dtype) {
  return element_size(grad_dtype) == 2 ? std::optional(grad_dtype) : std::nullopt;
}

SyntheticModel::SyntheticModel(const TensorShapes& tensors, const ModelOptions& options)
    : param_(tensors, DType::kFloat32, *options.backend, kParamExponent),
      grad_(tensors, options.grad_dtype, *options.backend, kGradExponent),
      grad_views_(grad_.views().begin(), grad_.views().end()),
      params_(options.backend) {
  if (options.model_dtype) model_.emplace(tensors, *options.model_dtype, *options.backend);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    params_.add({.name = tensors[t].name,
                 .param = param_.views()[t],
                 .model = model_ ? model_->views()[t] : TensorView{},
                 .group = 0});
  }
}

}  // namespace gradfuse::workload
