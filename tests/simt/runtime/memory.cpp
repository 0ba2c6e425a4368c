// Memory: allocation, copies, and what a pointer points to.
#include "engine/memory.hpp"

#include <cstring>

#include "runtime/machine.hpp"

using simt::done;
using simt::MemoryKind;
using simt::state;

namespace {

cudaError_t allocate(void** data, std::size_t num_bytes, MemoryKind kind, bool is_stream_ordered = false) {
  const std::lock_guard lock(simt::machine_mutex());
  if (!is_stream_ordered && simt::is_forbidden_in_capture()) return done(cudaErrorStreamCaptureUnsupported);
  *data = nullptr;
  if (state().sticky_error != cudaSuccess) return done();
  const int device = simt::current_device();
  const bool fits =
      kind == MemoryKind::kPinned || num_bytes <= state().machine.bytes_per_device - simt::bytes_on_device(device);
  if (!fits) return done(cudaErrorMemoryAllocation);
  if (num_bytes > 0) *data = simt::allocate(kind, device, num_bytes)->data;
  return done();
}

cudaError_t free_at_once(void* data) {
  const std::lock_guard lock(simt::machine_mutex());
  if (data == nullptr) return done();
  if (simt::is_forbidden_in_capture()) return done(cudaErrorStreamCaptureUnsupported);
  simt::run_all();  // freeing waits for the device
  simt::Allocation* allocation = simt::find_allocation(data);
  if (allocation == nullptr || allocation->data != data) return done(cudaErrorInvalidValue);
  simt::release(allocation);
  return done();
}

bool is_pageable(const void* data) { return simt::find_allocation(data) == nullptr; }

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, size_t num_bytes) { return allocate(data, num_bytes, MemoryKind::kDevice); }
cudaError_t cudaMallocHost(void** data, size_t num_bytes) { return allocate(data, num_bytes, MemoryKind::kPinned); }
cudaError_t cudaMallocManaged(void** data, size_t num_bytes, unsigned) {
  return allocate(data, num_bytes, MemoryKind::kManaged);
}
cudaError_t cudaMallocAsync(void** data, size_t num_bytes, cudaStream_t stream) {
  if (simt::find_stream(stream) == nullptr) return done(cudaErrorInvalidResourceHandle);
  return allocate(data, num_bytes, MemoryKind::kDevice, true);
}
cudaError_t cudaFree(void* data) { return free_at_once(data); }
cudaError_t cudaFreeHost(void* data) { return free_at_once(data); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = simt::find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  simt::Allocation* allocation = simt::find_allocation(data);
  if (allocation == nullptr || allocation->data != data) return done(cudaErrorInvalidValue);
  simt::queue(*stream, [allocation] { simt::release(allocation); });
  return done();
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (device < 0 || device >= state().machine.num_devices) return done(cudaErrorInvalidDevice);
  *pool = reinterpret_cast<cudaMemPool_t>(static_cast<std::uintptr_t>(device) + 1);  // a handle is all that it is here
  return done();
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  const std::lock_guard lock(simt::machine_mutex());
  const auto device = static_cast<int>(reinterpret_cast<std::uintptr_t>(pool)) - 1;
  if (device < 0 || device >= state().machine.num_devices) return done(cudaErrorInvalidValue);
  switch (attribute) {
    case cudaMemPoolAttrUsedMemCurrent:
    case cudaMemPoolAttrReservedMemCurrent: *static_cast<std::uint64_t*>(value) = simt::bytes_on_device(device); break;
    case cudaMemPoolAttrUsedMemHigh:
    case cudaMemPoolAttrReservedMemHigh:
      *static_cast<std::uint64_t*>(value) = simt::peak_bytes_on_device(device);
      break;
    default: return done(cudaErrorInvalidValue);
  }
  return done();
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = state().machine.bytes_per_device;
  *free_bytes = *total_bytes - simt::bytes_on_device(simt::current_device());
  return done();
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  const std::lock_guard lock(simt::machine_mutex());
  *attributes = {};
  const simt::Allocation* allocation = simt::find_allocation(data);
  if (allocation == nullptr) return done();  // cudaMemoryTypeUnregistered
  attributes->device = allocation->device;
  switch (allocation->kind) {
    case MemoryKind::kDevice: attributes->type = cudaMemoryTypeDevice; break;
    case MemoryKind::kPinned: attributes->type = cudaMemoryTypeHost; break;
    case MemoryKind::kManaged: attributes->type = cudaMemoryTypeManaged; break;
  }
  return done();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t num_bytes, cudaMemcpyKind, cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = simt::find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  if (is_pageable(from) && is_pageable(to)) return done(cudaErrorInvalidValue);
  if (is_pageable(from)) {  // staged: the caller may change it at once
    const auto* begin = static_cast<const std::byte*>(from);
    simt::queue(*stream, [to, staged = std::vector<std::byte>(begin, begin + num_bytes)] {
      simt::copy_bytes(to, staged.data(), staged.size());
    });
    return done();
  }
  simt::queue(*stream, [to, from, num_bytes] { simt::copy_bytes(to, from, num_bytes); });
  if (is_pageable(to)) return cudaStreamSynchronize(handle);
  return done();
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t num_bytes, cudaMemcpyKind kind) {
  const cudaError_t status = cudaMemcpyAsync(to, from, num_bytes, kind, nullptr);
  return status == cudaSuccess ? cudaStreamSynchronize(nullptr) : status;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t num_bytes, cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = simt::find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  if (is_pageable(to)) return done(cudaErrorInvalidValue);
  simt::queue(*stream, [to, value, num_bytes] { simt::fill_bytes(to, value, num_bytes); });
  return done();
}
cudaError_t cudaMemset(void* to, int value, size_t num_bytes) { return cudaMemsetAsync(to, value, num_bytes, nullptr); }

}  // extern "C"
