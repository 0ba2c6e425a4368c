// Devices, versions, errors.
#include <cstring>

#include "runtime/machine.hpp"

using simt::done;
using simt::state;

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = state().machine.driver_version;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (state().machine.driver_version == 0 || state().machine.driver_version / 1000 < CUDART_VERSION / 1000) {
    return done(cudaErrorInsufficientDriver);
  }
  *count = state().machine.num_devices;
  return done(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= state().machine.num_devices) return done(cudaErrorInvalidDevice);
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *value = state().machine.num_sms; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess: *value = 1; break;
    default: return done(cudaErrorInvalidValue);
  }
  return done();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= state().machine.num_devices) return done(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "emulated device");
  properties->major = 9;
  properties->multiProcessorCount = state().machine.num_sms;
  properties->totalGlobalMem = state().machine.bytes_per_device;
  return done();
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int, size_t) {
  *blocks = state().machine.blocks_per_sm;
  return done();
}
cudaError_t cudaDeviceSynchronize() {
  const std::lock_guard lock(simt::machine_mutex());
  if (simt::is_forbidden_in_capture()) return done(cudaErrorStreamCaptureUnsupported);
  return done(simt::run_all() ? cudaSuccess : cudaErrorLaunchTimeout);
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorMisalignedAddress: return "cudaErrorMisalignedAddress";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    case cudaErrorLaunchTimeout: return "cudaErrorLaunchTimeout";
    case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
    case cudaErrorCapturedEvent: return "cudaErrorCapturedEvent";
    default: return "cudaErrorUnknown";
  }
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }

}  // extern "C"
