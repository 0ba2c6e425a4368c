#include "src/cli/info_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gradfuse/backend.hpp>

namespace gradfuse::cli {
namespace {

void print_info() {
  const BackendInfo cpu = describe(*cpu_backend());
  fmt::print(
      "gradfuse {}\n"
      "cpu: available\n"
      "  SIMD target in use: {}\n"
      "  SIMD targets available: {}\n"
      "  threads: {}\n",
      GRADFUSE_VERSION, cpu.target, fmt::join(cpu_targets(), ", "), cpu.threads);
  if (const std::string reason = why_no_cuda(); !reason.empty()) {
    fmt::print("cuda: not available: {}\n", reason);
    return;
  }
  const BackendInfo cuda = describe(*cuda_backend());
  fmt::print(
      "cuda: available\n"
      "  device 0: {} ({})\n"
      "  driver for CUDA {}, gradfuse built with CUDA {}\n",
      cuda.device, cuda.target, cuda.driver, cuda.toolkit);
}

}  // namespace

void add_info_command(CLI::App& app) {
  app.add_subcommand("info", "Show backends, SIMD targets, threads and devices")->callback(print_info);
}

}  // namespace gradfuse::cli
