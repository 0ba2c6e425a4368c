#pragma once
// Owners of what the CUDA runtime hands out, and of the thread's current device.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "src/backend/cuda/check.hpp"

namespace gradfuse {

/// Makes a device the current one of this thread as long as it lives.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    check_cuda(cudaGetDevice(&before_), "asking for the current device");
    if (device == before_) return;
    check_cuda(cudaSetDevice(device), "choosing the device");
    was_changed_ = true;
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() {
    if (was_changed_) (void)cudaSetDevice(before_);
  }

 private:
  int before_ = 0;
  bool was_changed_ = false;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    check_cuda(cudaEventCreateWithFlags(&event_, flags), "creating an event");
  }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }
  cudaEvent_t get() const noexcept { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Host memory that the device reads and writes by itself.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  explicit PinnedBuffer(std::size_t num_bytes) : num_bytes_(num_bytes) {
    void* data = nullptr;
    check_cuda(cudaMallocHost(&data, num_bytes), "allocating pinned host memory");
    data_.reset(static_cast<std::byte*>(data));
  }
  std::byte* data() const noexcept { return data_.get(); }
  std::size_t num_bytes() const noexcept { return num_bytes_; }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept { (void)cudaFreeHost(data); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t num_bytes_ = 0;
};

}  // namespace gradfuse
