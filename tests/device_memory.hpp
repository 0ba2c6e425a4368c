#pragma once
// Memory for tensors of tests: the host's, or such as host and GPU both reach while tests run on a GPU.
#include <gradfuse/tensor_view.hpp>

#include <cstddef>
#include <memory>

namespace gradfuse::test {

/// Where tensors are made from now on, for as long as the object lives.
class OnDevice {
 public:
  explicit OnDevice(Device device);
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice();

 private:
  Device before_;
};

/// Memory that the host and the device of the tests reach.
class SharedMemory {
 public:
  SharedMemory() = default;
  explicit SharedMemory(std::size_t num_bytes);
  SharedMemory(SharedMemory&&) noexcept = default;
  SharedMemory& operator=(SharedMemory&&) noexcept = default;

  std::byte* data() const noexcept { return data_.get(); }
  std::size_t num_bytes() const noexcept { return num_bytes_; }
  Device device() const noexcept { return device_; }

 private:
  struct Free {
    Device device;
    void operator()(std::byte* data) const noexcept;
  };
  Device device_;
  std::unique_ptr<std::byte, Free> data_{nullptr, {}};
  std::size_t num_bytes_ = 0;
};

/// Until the device has done all that was queued. The host may then look at its memory.
void wait_for(Device device);
/// Between memory of the host and of any device.
void copy_tensor(const TensorView& to, const ConstTensorView& from);

}  // namespace gradfuse::test
