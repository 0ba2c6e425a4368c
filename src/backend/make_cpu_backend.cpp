// Choosing the CPU backend's target and threads.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <omp.h>

#include <gradfuse/error.hpp>

#include "src/backend/cpu_backend.hpp"

namespace gradfuse {
namespace {
constexpr int kMaxThreads = 4096;

const cpu::Loops& find_loops(const std::string& target) {
  if (target.empty()) return *cpu::available_loops().front();
  for (const cpu::Loops* loops : cpu::available_loops()) {
    if (loops->target == target) return *loops;
  }
  throw Error(fmt::format("SIMD target \"{}\" is not available on this processor; choose one of: {}", target,
                          fmt::join(cpu_targets(), ", ")));
}
}  // namespace

std::vector<std::string> cpu_targets() {
  std::vector<std::string> names;
  for (const cpu::Loops* loops : cpu::available_loops()) names.emplace_back(loops->target);
  return names;
}

std::shared_ptr<const Backend> cpu_backend(const CpuOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    throw Error(fmt::format("threads is {}; give a number from 1 to {}, or 0 for all processors", options.threads,
                            kMaxThreads));
  }
  const int threads = options.threads == 0 ? omp_get_max_threads() : options.threads;
  return std::make_shared<CpuBackend>(find_loops(options.target), threads);
}

}  // namespace gradfuse
