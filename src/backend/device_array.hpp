#pragma once
// An array in a backend's memory that grows.
#include <type_traits>
#include <vector>

#include "src/backend/device_memory.hpp"

namespace gradfuse {

template <class T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  T* data() const noexcept { return buffer_.template as<T>(); }
  std::size_t size() const noexcept { return size_; }

  /// Keeps what it holds; what is new is zero.
  void grow(const DeviceMemory& memory, std::size_t size) {
    if (size <= size_) return;
    Buffer grown = memory.allocate(size * sizeof(T));
    memory.copy(grown.as<T>(), data(), size_ * sizeof(T));
    buffer_ = std::move(grown);
    size_ = size;
  }
  void clear(const DeviceMemory& memory) const { memory.clear(data(), size_ * sizeof(T)); }

  T get(const DeviceMemory& memory, std::size_t index) const {
    T value;
    memory.download(&value, data() + index, sizeof value);
    return value;
  }
  void set(const DeviceMemory& memory, std::size_t index, const T& value) const {
    memory.upload(data() + index, &value, sizeof value);
  }
  std::vector<T> to_host(const DeviceMemory& memory) const {
    std::vector<T> values(size_);
    memory.download(values.data(), data(), size_ * sizeof(T));
    return values;
  }

 private:
  Buffer buffer_;
  std::size_t size_ = 0;
};

}  // namespace gradfuse
