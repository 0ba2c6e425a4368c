#include "src/backend/backend.hpp"

namespace gradfuse {

BackendInfo describe(const Backend& backend) { return backend.info(); }

void synchronize(const Backend& backend) { backend.memory().wait(); }

DevicePool device_pool(const Backend& backend) { return backend.memory().pool(); }

void copy_to_host(const Backend& backend, const ConstTensorView& from, void* to) {
  backend.memory().download(to, from.data, from.num_bytes());
}

void copy_from_host(const Backend& backend, const void* from, const TensorView& to) {
  backend.memory().upload(to.data, from, to.num_bytes());
}

}  // namespace gradfuse
