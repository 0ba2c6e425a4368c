#include "engine/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <simt/fault.hpp>
#include <string>

#include "engine/asan.hpp"

namespace simt {
namespace {

constexpr std::size_t kGuard = 512, kAlignment = 512;  // cudaMalloc's is 256

std::map<const std::byte*, std::unique_ptr<Allocation>> allocations;  // by beginning
Allocation* last_found = nullptr;
std::map<int, std::size_t> peak_bytes;  // by device

// What was freed lies here for a while, so that its addresses are not given out again at once and a use of it shows.
struct Freed {
  std::unique_ptr<std::byte[]> storage;
  std::size_t num_bytes;
};
std::deque<Freed> quarantine;
std::size_t bytes_in_quarantine = 0;
constexpr std::size_t kMaxQuarantine = 64 << 20;

/// Where a copy may read or write: memory of a device is opened for as long as it takes.
class Opened {
 public:
  Opened(const void* address, std::size_t num_bytes, const char* what)
      : begin_(static_cast<const std::byte*>(address)) {
    allocation_ = find_allocation(address);
    if (allocation_ == nullptr) return;  // pageable host memory, which AddressSanitizer looks after
    if (begin_ + num_bytes > allocation_->data + allocation_->num_bytes) {
      throw Fault(FaultKind::kOutOfBounds, std::string(what) + " of " + std::to_string(num_bytes) +
                                               " bytes goes past the end of an allocation of " +
                                               std::to_string(allocation_->num_bytes));
    }
    num_bytes_ = num_bytes;
    if (allocation_->kind == MemoryKind::kDevice) open_memory(begin_, num_bytes_);
  }
  ~Opened() {
    if (allocation_ != nullptr && allocation_->kind == MemoryKind::kDevice) close_memory(begin_, num_bytes_);
  }
  Allocation* allocation() const { return allocation_; }
  std::size_t offset() const { return static_cast<std::size_t>(begin_ - allocation_->data); }

 private:
  const std::byte* begin_;
  Allocation* allocation_;
  std::size_t num_bytes_ = 0;
};

}  // namespace

Allocation* allocate(MemoryKind kind, int device, std::size_t num_bytes) {
  auto allocation = std::make_unique<Allocation>();
  const std::size_t total = num_bytes + 2 * kGuard + kAlignment;
  allocation->storage = std::make_unique<std::byte[]>(total);
  std::fill_n(allocation->storage.get(), total, std::byte{0xFF});
  const auto address = reinterpret_cast<std::uintptr_t>(allocation->storage.get()) + kGuard;
  allocation->data = allocation->storage.get() + kGuard + (kAlignment - address % kAlignment) % kAlignment;
  allocation->num_bytes = num_bytes;
  allocation->kind = kind;
  allocation->device = device;
  if (kind == MemoryKind::kDevice) allocation->is_initialized.resize(num_bytes);
  close_memory(allocation->storage.get(), total);
  if (kind != MemoryKind::kDevice) open_memory(allocation->data, num_bytes);
  Allocation* result = allocation.get();
  allocations.emplace(result->data, std::move(allocation));
  peak_bytes[device] = std::max(peak_bytes[device], bytes_on_device(device));
  return result;
}

void release(Allocation* allocation) {
  const std::size_t total = allocation->num_bytes + 2 * kGuard + kAlignment;
  close_memory(allocation->storage.get(), total);
  quarantine.push_back({std::move(allocation->storage), total});
  bytes_in_quarantine += total;
  while (bytes_in_quarantine > kMaxQuarantine) {
    open_memory(quarantine.front().storage.get(), quarantine.front().num_bytes);
    bytes_in_quarantine -= quarantine.front().num_bytes;
    quarantine.pop_front();
  }
  if (last_found == allocation) last_found = nullptr;
  allocations.erase(allocation->data);
}

void release_all() {
  while (!allocations.empty()) release(allocations.begin()->second.get());
  peak_bytes.clear();
}

Allocation* find_allocation(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto holds = [byte](const Allocation& a) { return byte >= a.data && byte <= a.data + a.num_bytes; };
  if (last_found != nullptr && holds(*last_found)) return last_found;
  const auto after = allocations.upper_bound(byte);
  if (after == allocations.begin()) return nullptr;
  Allocation* before = std::prev(after)->second.get();
  if (!holds(*before)) return nullptr;
  return last_found = before;
}

std::size_t num_allocations() { return allocations.size(); }

std::size_t bytes_on_device(int device) {
  std::size_t sum = 0;
  for (const auto& [data, allocation] : allocations) {
    if (allocation->kind != MemoryKind::kPinned && allocation->device == device) sum += allocation->num_bytes;
  }
  return sum;
}

std::size_t peak_bytes_on_device(int device) { return peak_bytes[device]; }

void copy_bytes(void* to, const void* from, std::size_t num_bytes) {
  if (num_bytes == 0) return;
  const Opened source(from, num_bytes, "a copy's source"), destination(to, num_bytes, "a copy's destination");
  std::copy_n(static_cast<const std::byte*>(from), num_bytes, static_cast<std::byte*>(to));
  if (destination.allocation() == nullptr || destination.allocation()->is_initialized.empty()) return;
  std::vector<bool>& to_known = destination.allocation()->is_initialized;
  const bool from_fresh = source.allocation() != nullptr && !source.allocation()->is_initialized.empty();
  for (std::size_t i = 0; i < num_bytes; ++i) {
    to_known[destination.offset() + i] = !from_fresh || source.allocation()->is_initialized[source.offset() + i];
  }
}

void read_bytes(void* to, const void* from, std::size_t num_bytes, const char* what) {
  const Opened source(from, num_bytes, what);
  if (source.allocation() == nullptr) throw Fault(FaultKind::kOutOfBounds, std::string(what) + " is in host memory");
  const std::vector<bool>& known = source.allocation()->is_initialized;
  for (std::size_t i = 0; i < num_bytes && !known.empty(); ++i) {
    if (!known[source.offset() + i]) throw Fault(FaultKind::kUninitialized, std::string(what) + " was never written");
  }
  std::copy_n(static_cast<const std::byte*>(from), num_bytes, static_cast<std::byte*>(to));
}

void fill_bytes(void* to, int value, std::size_t num_bytes) {
  if (num_bytes == 0) return;
  const Opened destination(to, num_bytes, "a fill's destination");
  std::fill_n(static_cast<std::byte*>(to), num_bytes, static_cast<std::byte>(value));
  if (destination.allocation() == nullptr || destination.allocation()->is_initialized.empty()) return;
  const auto begin =
      destination.allocation()->is_initialized.begin() + static_cast<std::ptrdiff_t>(destination.offset());
  std::fill_n(begin, num_bytes, true);
}

}  // namespace simt
