// Choosing the CUDA device, and saying why there is none.
#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <limits>

#include "src/backend/cuda/cuda_backend.hpp"

namespace gradfuse {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string why_no_cuda() {
  int driver = 0, runtime = 0, num_devices = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
    (void)cudaGetLastError();
    return "there is no NVIDIA driver on this machine";
  }
  check_cuda(cudaRuntimeGetVersion(&runtime), "asking for the runtime's version");
  const cudaError_t status = cudaGetDeviceCount(&num_devices);
  if (status != cudaSuccess) (void)cudaGetLastError();
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("the driver is for CUDA {}, but gradfuse was built with {}; update the driver",
                       version_text(driver), version_text(runtime));
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && num_devices == 0)) return "there is no NVIDIA GPU";
  return status == cudaSuccess ? "" : fmt::format("{} ({})", cudaGetErrorString(status), cudaGetErrorName(status));
}

std::shared_ptr<const Backend> cuda_backend(const CudaOptions& options) {
  if (const std::string reason = why_no_cuda(); !reason.empty()) throw Error(fmt::format("no CUDA: {}", reason));
  int num_devices = 0;
  check_cuda(cudaGetDeviceCount(&num_devices), "counting the devices");
  if (options.device < 0 || options.device >= num_devices ||
      options.device > std::numeric_limits<std::int16_t>::max()) {
    throw Error(
        fmt::format("there is no CUDA device {}: this machine has {}, counted from 0", options.device, num_devices));
  }
  return std::make_shared<CudaBackend>(options.device, options.stream);
}

}  // namespace gradfuse
