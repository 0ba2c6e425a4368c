#pragma once
// On what a command runs its passes.
#include <CLI/CLI.hpp>
#include <gradfuse/backend.hpp>

#include <memory>
#include <string>

namespace gradfuse::cli {

struct BackendFlags {
  std::string device = "cpu";
  int threads = 0;
  std::string target;
};

/// Puts --threads and --target on the command. `flags` must live as long as the command.
void add_backend_flags(CLI::App& command, BackendFlags& flags);

/// Puts --device on the command, with auto as its default.
void add_device_flag(CLI::App& command, BackendFlags& flags);

/// @throws Error  CUDA is asked for and not available, or asked for together with flags of the CPU; the target is not
/// available here, or the number of threads is out of range.
std::shared_ptr<const Backend> backend_of(const BackendFlags& flags);

/// For people: "cpu avx512, 2 threads", "cuda NVIDIA H200 (sm_90)".
std::string describe_backend(const Backend& backend);

}  // namespace gradfuse::cli
