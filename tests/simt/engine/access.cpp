#include "engine/access.hpp"

#include <map>
#include <simt/access.hpp>
#include <simt/fault.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/counting.hpp"
#include "engine/launch_state.hpp"
#include "engine/memory.hpp"

namespace simt {
namespace {

struct Launch {
  std::string kernel;
  std::uint32_t number = 0;
  std::unordered_map<unsigned, std::uint32_t> block_epochs;
  std::map<std::pair<unsigned, unsigned>, std::uint32_t> warp_epochs;
  struct Shared {
    unsigned block;
    const std::byte* data;
    std::size_t num_bytes;
    std::vector<Cell> cells;
    std::vector<bool> is_initialized;
  };
  std::vector<Shared> shared;
  // Of the running thread, looked up once for as long as it runs.
  RunningThread thread{~0u, ~0u};
  const std::uint32_t* block_epoch = nullptr;
  const std::uint32_t* warp_epoch = nullptr;
};

Launch launch;
std::uint32_t next_launch = 1;

std::string name_of(const AccessRecord& access) {
  return "thread " + std::to_string(access.thread) + " of block " + std::to_string(access.block);
}
std::string here() {
  const RunningThread& thread = *running_thread();
  return "thread " + std::to_string(thread.thread) + " of block " + std::to_string(thread.block) + " of " +
         launch.kernel;
}

void look_up_thread() {
  const RunningThread& now = *running_thread();
  if (now.block == launch.thread.block && now.thread == launch.thread.thread && launch.block_epoch != nullptr) return;
  launch.thread = now;
  const std::pair warp{now.block, now.thread / kWarpSize};
  launch.block_epoch = &launch.block_epochs[now.block];
  launch.warp_epoch = &launch.warp_epochs[warp];
}

bool is_ordered(const AccessRecord& before, const AccessRecord& now) {
  if (before.launch != now.launch) return true;  // another launch: the streams' business
  if (before.block != now.block) return false;
  return before.thread == now.thread || before.block_epoch < now.block_epoch ||
         (before.thread / kWarpSize == now.thread / kWarpSize && before.warp_epoch < now.warp_epoch);
}

enum class Access { kLoad, kStore, kAtomic };

[[noreturn]] void race(const AccessRecord& before, bool was_read, Access access, const char* where) {
  throw Fault(FaultKind::kRace, here() + (access == Access::kLoad ? " reads " : " writes ") + where + " that " +
                                    name_of(before) + (was_read ? " has read" : " has written") +
                                    ", and nothing orders the two");
}

void check_races(Cell* cells, std::size_t num_cells, Access access, const char* where) {
  const AccessRecord now{launch.number,       launch.thread.block, launch.thread.thread,
                         *launch.block_epoch, *launch.warp_epoch,  access == Access::kAtomic};
  for (Cell* cell = cells; cell != cells + num_cells; ++cell) {
    const bool both_atomic = access == Access::kAtomic && cell->write.is_atomic;
    if (!both_atomic && !is_ordered(cell->write, now)) race(cell->write, false, access, where);
    if (access == Access::kLoad) {
      // The older of the two reads that are kept goes, unless it is of another thread and not yet ordered.
      if (cell->reads[0].launch == now.launch && cell->reads[0].thread != now.thread &&
          !is_ordered(cell->reads[0], now))
        cell->reads[1] = cell->reads[0];
      cell->reads[0] = now;
    } else {
      for (const AccessRecord& read : cell->reads) {
        if (!is_ordered(read, now)) race(read, true, access, where);
      }
      cell->write = now;
    }
  }
}

Allocation& find_global(const void* address, std::size_t num_bytes, std::size_t alignment) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  if (value % alignment != 0) {
    throw Fault(FaultKind::kMisaligned, here() + ": an access of " + std::to_string(num_bytes) + " bytes is " +
                                            std::to_string(value % alignment) + " bytes off its boundary");
  }
  Allocation* allocation = find_allocation(address);
  const auto* byte = static_cast<const std::byte*>(address);
  if (allocation == nullptr) {
    throw Fault(FaultKind::kOutOfBounds, here() + " accesses what is no memory of a device");
  }
  if (byte + num_bytes > allocation->data + allocation->num_bytes) {
    throw Fault(FaultKind::kOutOfBounds, here() + " accesses byte " + std::to_string(byte - allocation->data) +
                                             " and " + std::to_string(num_bytes - 1) + " more of an allocation of " +
                                             std::to_string(allocation->num_bytes));
  }
  if (allocation->kind == MemoryKind::kDevice && allocation->device != running_device()) {
    throw Fault(FaultKind::kWrongDevice, here() + ", on device " + std::to_string(running_device()) +
                                             ", accesses memory of device " + std::to_string(allocation->device));
  }
  look_up_thread();
  return *allocation;
}

void check_global(Allocation& allocation, const void* address, std::size_t num_bytes, Access access) {
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - allocation.data);
  if (!allocation.is_initialized.empty()) {
    for (std::size_t i = offset; i < offset + num_bytes; ++i) {
      if (access == Access::kStore) allocation.is_initialized[i] = true;
      if (allocation.is_initialized[i]) continue;
      throw Fault(FaultKind::kUninitialized,
                  here() + " reads byte " + std::to_string(i) + " of fresh memory, which nobody has written");
    }
  }
  if (allocation.cells.empty()) allocation.cells.resize(allocation.num_bytes / 2 + 1);
  check_races(&allocation.cells[offset / 2], (num_bytes + 1) / 2, access, "global memory");
}

Launch::Shared& find_shared(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  look_up_thread();
  for (Launch::Shared& shared : launch.shared) {
    if (shared.block == launch.thread.block && byte >= shared.data && byte < shared.data + shared.num_bytes)
      return shared;
  }
  throw Fault(FaultKind::kOutOfBounds, here() + " accesses what is no shared memory of its block");
}
void check_shared(const void* address, std::size_t num_bytes, Access access) {
  Launch::Shared& shared = find_shared(address);
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - shared.data);
  for (std::size_t i = offset; i < offset + num_bytes; ++i) {
    if (access == Access::kStore) shared.is_initialized[i] = true;
    if (!shared.is_initialized[i])
      throw Fault(FaultKind::kUninitialized, here() + " reads shared memory that nobody has written");
  }
  check_races(&shared.cells[offset / 2], (num_bytes + 1) / 2, access, "shared memory");
}

}  // namespace

void begin_launch(const GridShape& shape) {
  launch = {};
  launch.kernel = shape.name;
  launch.number = next_launch++;
  begin_counting(shape.name);
}
void end_launch() { end_counting(); }

void passed_barrier(unsigned block) { ++launch.block_epochs[block]; }
void passed_warp_op(unsigned block, unsigned warp, unsigned mask) {
  if (mask == ~0u) lanes_have_met(block, warp);
}
void passed_warp_sync(unsigned block, unsigned warp) { ++launch.warp_epochs[{block, warp}]; }
void made_shared_memory(unsigned block, const void* data, std::size_t num_bytes) {
  launch.shared.push_back({block, static_cast<const std::byte*>(data), num_bytes, std::vector<Cell>(num_bytes / 2 + 1),
                           std::vector<bool>(num_bytes)});
}

void check_load(const void* from, std::size_t num_bytes, std::size_t alignment) {
  check_global(find_global(from, num_bytes, alignment), from, num_bytes, Access::kLoad);
  count_access(launch.thread, from, num_bytes, false);
}
void check_store(const void* to, std::size_t num_bytes, std::size_t alignment) {
  check_global(find_global(to, num_bytes, alignment), to, num_bytes, Access::kStore);
  count_access(launch.thread, to, num_bytes, true);
}
void check_atomic(const void* at, std::size_t num_bytes) {
  check_global(find_global(at, num_bytes, num_bytes), at, num_bytes, Access::kAtomic);
  count_atomic();
}
void check_shared_load(const void* from, std::size_t num_bytes) { check_shared(from, num_bytes, Access::kLoad); }
void check_shared_store(const void* to, std::size_t num_bytes) { check_shared(to, num_bytes, Access::kStore); }

__attribute__((no_sanitize("address"))) void copy_checked(void* to, const void* from, std::size_t num_bytes) {
  // Not memcpy, which AddressSanitizer takes over.
  auto* out = static_cast<volatile unsigned char*>(to);
  const auto* in = static_cast<const volatile unsigned char*>(from);
  for (std::size_t i = 0; i < num_bytes; ++i) out[i] = in[i];
}

}  // namespace simt
