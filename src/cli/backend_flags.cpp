#include "src/cli/backend_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gradfuse/error.hpp>

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

void add_device_flag(CLI::App& command, BackendFlags& flags) {
  flags.device = "auto";
  command
      .add_option("--device", flags.device,
                  "auto: the first GPU if there is one, unless --threads or --target is given")
      ->type_name("auto|cpu|cuda")
      ->check(one_of({"auto", "cpu", "cuda"}))
      ->capture_default_str()
      ->group("Run");
}

std::shared_ptr<const Backend> backend_of(const BackendFlags& flags) {
  const bool has_cpu_flags = flags.threads != 0 || !flags.target.empty();
  if (flags.device == "cuda" && has_cpu_flags) {
    throw Error("--threads and --target are of the cpu; leave them out with --device cuda");
  }
  if (flags.device == "cuda") return cuda_backend();
  if (flags.device == "auto" && !has_cpu_flags && why_no_cuda().empty()) return cuda_backend();
  return cpu_backend({.threads = flags.threads, .target = flags.target});
}

std::string describe_backend(const Backend& backend) {
  const BackendInfo info = describe(backend);
  if (info.name == "cuda") return fmt::format("cuda {} ({})", info.device, info.target);
  return fmt::format("cpu {}, {} thread{}", info.target, info.threads, info.threads == 1 ? "" : "s");
}

}  // namespace gradfuse::cli
