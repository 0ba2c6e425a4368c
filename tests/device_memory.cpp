#include "tests/device_memory.hpp"

#include <cstring>
#include <new>
#include <utility>

#if GRADFUSE_TEST_CUDA
#include <cuda_runtime_api.h>

#include <stdexcept>
#endif

namespace gradfuse::test {
namespace {

Device tensors_device = Device::kCpu;

#if GRADFUSE_TEST_CUDA
void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}
#endif

}  // namespace

OnDevice::OnDevice(Device device) : before_(std::exchange(tensors_device, device)) {}
OnDevice::~OnDevice() { tensors_device = before_; }

SharedMemory::SharedMemory(std::size_t num_bytes) : device_(tensors_device), num_bytes_(num_bytes) {
  void* data = nullptr;
  if (device_.kind == Device::Kind::kCpu) data = ::operator new(num_bytes);
#if GRADFUSE_TEST_CUDA
  else
    check(cudaMallocManaged(&data, num_bytes, cudaMemAttachGlobal));
#endif
  data_ = {static_cast<std::byte*>(data), Free{device_}};
}

void SharedMemory::Free::operator()(std::byte* data) const noexcept {
  if (device.kind == Device::Kind::kCpu) ::operator delete(data);
#if GRADFUSE_TEST_CUDA
  else
    (void)cudaFree(data);
#endif
}

void wait_for(Device device) {
  if (device.kind == Device::Kind::kCpu) return;
#if GRADFUSE_TEST_CUDA
  check(cudaDeviceSynchronize());
#endif
}

void copy_tensor(const TensorView& to, const ConstTensorView& from) {
  if (from.numel == 0) return;
#if GRADFUSE_TEST_CUDA
  check(cudaDeviceSynchronize());
  check(cudaMemcpy(to.data, from.data, from.num_bytes(), cudaMemcpyDefault));
#else
  std::memcpy(to.data, from.data, from.num_bytes());
#endif
}

}  // namespace gradfuse::test
