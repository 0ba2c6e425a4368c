#pragma once
// Views of memory that somebody else owns: a contiguous run of elements on one device.
#include <gradfuse/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <ranges>
#include <type_traits>

namespace gradfuse {

struct Device {
  enum class Kind : std::uint16_t { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  std::int16_t index = 0;

  static const Device kCpu;
  friend constexpr bool operator==(const Device&, const Device&) = default;
};
inline constexpr Device Device::kCpu{};

/// `numel` contiguous elements of `dtype` at `data`, aligned to the element. Shapes do not matter to this library.
/// A view that was default-constructed stands for "no tensor": no gradient, no model copy.
struct TensorView {
  void* data = nullptr;
  std::size_t numel = 0;
  DType dtype = DType::kFloat32;
  Device device = Device::kCpu;

  std::size_t num_bytes() const noexcept { return numel * element_size(dtype); }
};

/// A `TensorView` that is only read through.
struct ConstTensorView {
  const void* data = nullptr;
  std::size_t numel = 0;
  DType dtype = DType::kFloat32;
  Device device = Device::kCpu;

  constexpr ConstTensorView() = default;
  constexpr ConstTensorView(const void* data_, std::size_t numel_, DType dtype_, Device device_ = Device::kCpu)
      : data(data_), numel(numel_), dtype(dtype_), device(device_) {}
  constexpr ConstTensorView(const TensorView& view)
      : data(view.data), numel(view.numel), dtype(view.dtype), device(view.device) {}

  std::size_t num_bytes() const noexcept { return numel * element_size(dtype); }
  bool is_absent() const noexcept { return data == nullptr && numel == 0; }
  friend bool operator==(const ConstTensorView&, const ConstTensorView&) = default;
};

/// The view of a vector, an array or a span in host memory; a `ConstTensorView` if its elements are const.
template <class Range>
requires std::ranges::contiguous_range<Range> && std::ranges::borrowed_range<Range>
auto view_of(Range&& elements) {
  using Element = std::remove_reference_t<std::ranges::range_reference_t<Range>>;
  using View = std::conditional_t<std::is_const_v<Element>, ConstTensorView, TensorView>;
  return View{std::ranges::data(elements), std::ranges::size(elements), dtype_of<std::remove_const_t<Element>>,
              Device::kCpu};
}

}  // namespace gradfuse
