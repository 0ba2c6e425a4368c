#include "src/workload/available_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <optional>

namespace gradfuse::workload {
namespace {

/// The number after `key` in a file of "key value" lines.
std::optional<std::size_t> value_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::size_t value = 0;
    if (word == key && file >> value) return value;
  }
  return std::nullopt;
}

std::optional<std::size_t> number_in(const char* path) {
  std::ifstream file(path);
  std::size_t value = 0;
  if (file >> value) return value;
  return std::nullopt;  // no such file, or "max"
}

/// Of the control group as it is mounted in a container. Page cache counts as available there, too.
std::size_t available_in_group() {
  auto limit = number_in("/sys/fs/cgroup/memory.max");
  auto used = value_in("/sys/fs/cgroup/memory.stat", "anon");
  if (!limit) {  // version 1, which tells "no limit" as a huge number
    limit = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
    used = value_in("/sys/fs/cgroup/memory/memory.stat", "total_rss");
  }
  if (!limit) return SIZE_MAX;
  return *limit - std::min(*limit, used.value_or(0));
}

}  // namespace

std::size_t available_memory() {
  const auto kibibytes = value_in("/proc/meminfo", "MemAvailable:");
  return std::min(kibibytes ? *kibibytes * 1024 : SIZE_MAX, available_in_group());
}

std::string memory_shortage(std::size_t num_bytes) {
  const std::size_t available = available_memory();
  if (num_bytes <= available / 10 * 9) return {};
  constexpr double kMiB = 1024.0 * 1024.0;
  return fmt::format("needs {:.0f} MiB of memory, {:.0f} MiB are available", static_cast<double>(num_bytes) / kMiB,
                     static_cast<double>(available) / kMiB);
}

}  // namespace gradfuse::workload
