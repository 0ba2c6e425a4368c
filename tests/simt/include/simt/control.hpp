#pragma once
// The emulated machine: what it has, and what tests ask of it beside CUDA's own functions.
#include <cstddef>
#include <cstdint>
#include <string>

namespace simt {

struct Machine {
  int num_devices = 2;
  int num_sms = 2;
  int blocks_per_sm = 2;  // what the occupancy of every kernel is said to be
  std::size_t bytes_per_device = std::size_t{8} << 30;
  int driver_version = 13000;  // 0: there is no driver
  std::uint64_t seed = 1;      // of the order in which streams and threads run
};

/// Throws away all streams, events and memory of the machine there was, and starts this one.
void start_machine(const Machine& machine = {});

/// Device, pinned and managed allocations that were not freed.
std::size_t live_allocations();
/// Why the machine no longer works, if a kernel has failed; else empty.
std::string last_fault();

}  // namespace simt
