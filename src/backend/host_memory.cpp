#include <atomic>
#include <cstring>

#include "src/backend/device_memory.hpp"

namespace gradfuse {
namespace {

std::atomic<const char* (*)(const void*)> check_of_host_pointers = nullptr;

class HostReadback final : public Readback {
 public:
  explicit HostReadback(std::size_t num_bytes) : bytes_(allocate_host(num_bytes)) {}
  void request(const void* from) override { std::memcpy(bytes_.as<std::byte>(), from, bytes_.num_bytes()); }
  const void* wait() override { return bytes_.as<std::byte>(); }

 private:
  Buffer bytes_;
};

void copy_bytes(void* to, const void* from, std::size_t num_bytes) {
  if (num_bytes > 0) std::memcpy(to, from, num_bytes);  // of nothing, the pointers may be null
}

class HostMemory final : public DeviceMemory {
 public:
  Buffer allocate(std::size_t num_bytes) const override { return allocate_host(num_bytes); }
  std::unique_ptr<Readback> make_readback(std::size_t num_bytes) const override {
    return std::make_unique<HostReadback>(num_bytes);
  }
  void clear(void* to, std::size_t num_bytes) const override {
    if (num_bytes > 0) std::memset(to, 0, num_bytes);
  }
  void copy(void* to, const void* from, std::size_t num_bytes) const override { copy_bytes(to, from, num_bytes); }
  void upload(void* to, const void* from, std::size_t num_bytes) const override { copy_bytes(to, from, num_bytes); }
  void download(void* to, const void* from, std::size_t num_bytes) const override { copy_bytes(to, from, num_bytes); }
  void wait() const override {}
  const char* why_unreachable(const void* data) const override {
    const auto check = check_of_host_pointers.load(std::memory_order_relaxed);
    return check == nullptr ? "" : check(data);
  }
};

}  // namespace

void set_check_of_host_pointers(const char* (*why_unreachable)(const void* data)) noexcept {
  check_of_host_pointers = why_unreachable;
}

const DeviceMemory& host_memory() {
  static const HostMemory memory;
  return memory;
}

}  // namespace gradfuse
