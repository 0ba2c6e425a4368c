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
      "  threads: {}\n"
      "cuda: not available: built without the CUDA backend\n",
      GRADFUSE_VERSION, cpu.target, fmt::join(cpu_targets(), ", "), cpu.threads);
}

}  // namespace

void add_info_command(CLI::App& app) {
  app.add_subcommand("info", "Show backends, SIMD targets, threads and devices")->callback(print_info);
}

}  // namespace gradfuse::cli
