#pragma once
// Memory that a backend gave: zero-filled, aligned for its widest access, returned when the owner goes.
#include <cstddef>
#include <functional>
#include <memory>

namespace gradfuse {

class Buffer {
 public:
  using Deleter = std::function<void(std::byte*)>;
  Buffer() = default;
  Buffer(std::byte* data, std::size_t num_bytes, Deleter deleter)
      : data_(data, std::move(deleter)), num_bytes_(num_bytes) {}

  template <class T>
  T* as() const noexcept {
    return reinterpret_cast<T*>(data_.get());
  }
  std::size_t num_bytes() const noexcept { return num_bytes_; }

 private:
  std::unique_ptr<std::byte, Deleter> data_{nullptr, [](std::byte*) {}};
  std::size_t num_bytes_ = 0;
};

/// Host memory; from 2 MiB on in huge pages, where the system has them. @throws Error  there is not so much memory.
Buffer allocate_host(std::size_t num_bytes);

}  // namespace gradfuse
