#include "src/core/check_view.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <gradfuse/error.hpp>

#include "src/backend/backend.hpp"

namespace gradfuse {
namespace {
std::string device_name(Device device) {
  return device.kind == Device::Kind::kCpu ? "cpu" : fmt::format("cuda:{}", device.index);
}
}  // namespace

std::string tensor_label(std::size_t tensor, std::string_view name) {
  return name.empty() ? fmt::format("{}", tensor) : fmt::format("{} ({})", tensor, name);
}

void check_view(const ConstTensorView& view, const Backend& backend, std::string_view what) {
  const Device device = backend.device();
  const std::size_t size = element_size(view.dtype);
  if (size == 0) throw Error(fmt::format("{}: dtype {} is none of DType's", what, static_cast<int>(view.dtype)));
  if (view.is_absent()) return;  // wherever it is
  if (view.device != device) {
    throw Error(fmt::format("{} is on {}, but the backend works on {}; move it there", what, device_name(view.device),
                            device_name(device)));
  }
  if (view.numel == 0) return;
  if (view.data == nullptr) {
    throw Error(fmt::format("{} has {} elements but a null pointer; an absent one is a default-constructed view", what,
                            view.numel));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  if (address % size != 0) {
    throw Error(fmt::format("{}: address {:#x} is not aligned to its {}-byte {} elements", what, address, size,
                            dtype_name(view.dtype)));
  }
  if (view.numel > (UINTPTR_MAX - address) / size) {
    throw Error(fmt::format("{}: {} elements of {} do not fit into memory", what, view.numel, dtype_name(view.dtype)));
  }
  if (const std::string_view reason = backend.memory().why_unreachable(view.data); !reason.empty()) {
    throw Error(
        fmt::format("{}: address {:#x} is said to be on {}, but {}", what, address, device_name(device), reason));
  }
}

bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  const auto a_begin = reinterpret_cast<std::uintptr_t>(a.data), b_begin = reinterpret_cast<std::uintptr_t>(b.data);
  return a_begin < b_begin + b.num_bytes() && b_begin < a_begin + a.num_bytes();
}

}  // namespace gradfuse
