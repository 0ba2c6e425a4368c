#include "engine/counting.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <simt/counters.hpp>
#include <string>
#include <vector>

#include "engine/launch_state.hpp"

namespace simt {
namespace {

constexpr std::size_t kSector = 32;

// The k-th load of 16 bytes, say, of each lane of a warp are one access of the warp. Lanes that take no part in some
// accesses would shift the count of the others of that kind: so counts begin anew whenever the lanes meet.
struct WarpAccess {
  unsigned num_lanes = 0;
  std::uintptr_t sectors[kWarpSize];  // an access lies in one
};
struct Stream {  // of a warp: loads or stores of one width
  std::vector<WarpAccess> accesses;
  unsigned count[kWarpSize] = {};
};
struct WarpTraffic {
  Stream streams[2][5];
};

using WarpKey = std::pair<unsigned, unsigned>;  // block, warp

std::map<std::string, Counters, std::less<>> counters_of;
std::uint64_t launches_of_all = 0;
// Of the launch under way:
Counters* counting = nullptr;
std::map<WarpKey, WarpTraffic> warps;
WarpKey running_key{};
WarpTraffic* running_warp = nullptr;

void finish(Stream& stream, Traffic& traffic) {
  for (WarpAccess& access : stream.accesses) {
    std::uintptr_t* const end = access.sectors + access.num_lanes;
    std::sort(access.sectors, end);
    traffic.sectors += static_cast<std::uint64_t>(std::unique(access.sectors, end) - access.sectors);
  }
  stream.accesses.clear();
  std::ranges::fill(stream.count, 0u);
}
void finish(WarpTraffic& warp) {
  for (int width = 0; width < 5; ++width) {
    finish(warp.streams[0][width], counting->loads[width]);
    finish(warp.streams[1][width], counting->stores[width]);
  }
}

}  // namespace

void begin_counting(const char* kernel) {
  warps.clear();
  running_warp = nullptr;
  counting = &counters_of[kernel];
  ++counting->launches;
  ++launches_of_all;
}
void end_counting() {
  for (auto& [key, warp] : warps) finish(warp);
}
void lanes_have_met(unsigned block, unsigned warp) {
  const auto found = warps.find({block, warp});
  if (found != warps.end()) finish(found->second);
}
void count_atomic() { ++counting->atomics; }

void count_access(const RunningThread& thread, const void* address, std::size_t num_bytes, bool is_store) {
  const std::pair warp{thread.block, thread.thread / kWarpSize};
  if (running_warp == nullptr || warp != running_key) running_warp = &warps[running_key = warp];
  // A struct is taken in parts, as the hardware does.
  const std::size_t part = std::min<std::size_t>(16, num_bytes % 16 == 0 ? 16 : num_bytes & (~num_bytes + 1));
  const auto width = static_cast<unsigned>(std::countr_zero(part));
  for (std::size_t offset = 0; offset < num_bytes; offset += part) {
    Traffic& traffic = is_store ? counting->stores[width] : counting->loads[width];
    traffic.bytes += part;
    ++traffic.accesses;
    Stream& stream = running_warp->streams[is_store][width];
    const unsigned ordinal = stream.count[thread.thread % kWarpSize]++;
    if (ordinal >= stream.accesses.size()) stream.accesses.resize(ordinal + 1);
    WarpAccess& access = stream.accesses[ordinal];
    access.sectors[access.num_lanes++] = (reinterpret_cast<std::uintptr_t>(address) + offset) / kSector;
  }
}

std::uint64_t Counters::sectors() const {
  std::uint64_t sum = 0;
  for (const Traffic& traffic : loads) sum += traffic.sectors;
  for (const Traffic& traffic : stores) sum += traffic.sectors;
  return sum;
}
Counters counters(std::string_view kernel) {
  const auto found = counters_of.find(kernel);
  return found == counters_of.end() ? Counters{} : found->second;
}
std::uint64_t num_launches() { return launches_of_all; }
void reset_counters() {
  counters_of.clear();
  launches_of_all = 0;
}

}  // namespace simt
