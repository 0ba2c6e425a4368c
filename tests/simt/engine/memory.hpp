#pragma once
// The memory of the emulated devices, and the host memory that they reach.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace simt {

enum class MemoryKind { kDevice, kPinned, kManaged };

/// What the race detector knows of two bytes.
struct AccessRecord {
  std::uint32_t launch = 0;  // 0: none
  std::uint32_t block = 0, thread = 0, block_epoch = 0, warp_epoch = 0;
  bool is_atomic = false;
};
struct Cell {
  AccessRecord write, reads[2];
};

struct Allocation {
  std::byte* data = nullptr;
  std::size_t num_bytes = 0;
  MemoryKind kind = MemoryKind::kDevice;
  int device = 0;
  std::unique_ptr<std::byte[]> storage;
  std::vector<bool> is_initialized;  // by byte; only of fresh device memory
  std::vector<Cell> cells;           // by two bytes
};

/// With guards around it that AddressSanitizer knows. Device memory is filled with 0xFF and closed to the host.
Allocation* allocate(MemoryKind kind, int device, std::size_t num_bytes);
void release(Allocation* allocation);
void release_all();
/// The allocation that `address` lies in, its end included; null if there is none.
Allocation* find_allocation(const void* address);

std::size_t num_allocations();
std::size_t bytes_on_device(int device);
std::size_t peak_bytes_on_device(int device);

/// The runtime's own access to device memory, past AddressSanitizer. @throws Fault  it is out of bounds.
void copy_bytes(void* to, const void* from, std::size_t num_bytes);
void fill_bytes(void* to, int value, std::size_t num_bytes);
/// What a library's kernel reads. @throws Fault  also when nobody has written it.
void read_bytes(void* to, const void* from, std::size_t num_bytes, const char* what);

}  // namespace simt
