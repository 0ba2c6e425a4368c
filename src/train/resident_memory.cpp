#include <gradfuse/train/resident_memory.hpp>

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace gradfuse::train {
namespace {

/// "VmRSS:      1234 kB"
std::size_t kib_in_bytes(const std::string& line) {
  return static_cast<std::size_t>(std::stoull(line.substr(line.find(':') + 1))) * 1024;
}

}  // namespace

ResidentMemory resident_memory() {
  ResidentMemory memory;
  // Not getrusage where /proc is there: its peak outlives exec, so a child of a large process would report its
  // parent's.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) memory.peak_bytes = kib_in_bytes(line);
    if (line.starts_with("VmRSS:")) memory.current_bytes = kib_in_bytes(line);
  }
  if (memory.peak_bytes == 0) {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    memory.peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
    memory.current_bytes = memory.peak_bytes;
  }
  return memory;
}

}  // namespace gradfuse::train
