#pragma once
// What the launches of a kernel have moved.
#include <cstdint>
#include <string_view>

namespace simt {

struct Traffic {
  std::uint64_t bytes = 0;     // asked for by all lanes
  std::uint64_t accesses = 0;  // of a lane
  std::uint64_t sectors = 0;   // of 32 bytes, touched by a warp at a time
};

struct Counters {
  std::uint64_t launches = 0, atomics = 0;
  Traffic loads[5], stores[5];  // by width: 1, 2, 4, 8 and 16 bytes

  const Traffic& wide_loads() const { return loads[4]; }
  const Traffic& wide_stores() const { return stores[4]; }
  std::uint64_t sectors() const;
};

/// Since the last reset. A name that was never launched has zeros.
Counters counters(std::string_view kernel);
/// Launches of all kernels.
std::uint64_t num_launches();
void reset_counters();

}  // namespace simt
