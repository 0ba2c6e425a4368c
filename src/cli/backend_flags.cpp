#include "src/cli/backend_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "src/cli/choices.hpp"

namespace gradfuse::cli {

void add_backend_flags(CLI::App& command, BackendFlags& flags) {
  command.add_option("--threads", flags.threads, "0: as many as OpenMP would use")
      ->type_name("N")
      ->capture_default_str()
      ->group("Run");
  const std::vector<std::string> targets = cpu_targets();
  command.add_option("--target", flags.target, "SIMD target of the passes; the fastest unless given")
      ->type_name(fmt::format("{}", fmt::join(targets, "|")))
      ->check(one_of(targets))
      ->group("Run");
}

std::shared_ptr<const Backend> backend_of(const BackendFlags& flags) {
  return cpu_backend({.threads = flags.threads, .target = flags.target});
}

}  // namespace gradfuse::cli
