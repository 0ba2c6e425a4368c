#pragma once
// On what a command runs its passes.
#include <CLI/CLI.hpp>
#include <gradfuse/backend.hpp>

#include <memory>
#include <string>

namespace gradfuse::cli {

struct BackendFlags {
  int threads = 0;
  std::string target;
};

/// Puts --threads and --target on the command. `flags` must live as long as the command.
void add_backend_flags(CLI::App& command, BackendFlags& flags);

/// @throws Error  the target is not available here, or the number of threads is out of range.
std::shared_ptr<const Backend> backend_of(const BackendFlags& flags);

}  // namespace gradfuse::cli
