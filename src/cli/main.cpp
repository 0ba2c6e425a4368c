// The `gradfuse` program.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <gradfuse/error.hpp>

#include "src/cli/bench_command.hpp"
#include "src/cli/exit_codes.hpp"
#include "src/cli/help_format.hpp"
#include "src/cli/info_command.hpp"
#include "src/cli/sample_command.hpp"
#include "src/cli/train_command.hpp"

#include <cerrno>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>

namespace gradfuse::cli {
namespace {

constexpr const char* kFooter = R"(Start with: gradfuse train mlp
More about a command: gradfuse train mlp --help

Exit codes: 0 success; 1 failure (a file, memory, training that diverges, a
comparison that fails); 2 the command line is wrong.)";

/// CLI11's message, and the help that belongs to the command that was meant.
std::string explain(const CLI::App* app, const CLI::Error& error) {
  std::string command = app->get_name();
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    command += " " + app->get_name();
  }
  return fmt::format("gradfuse: error: {}\nSee {} --help\n", error.what(), command);
}

/// What was printed may still be on its way to a disk that is full.
void flush_stdout() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error("standard output cannot be written: " + std::generic_category().message(errno));
}

int run(int argc, char** argv) {
  CLI::App app("Fused gradient accumulation, unscaling, clipping and optimizer steps", "gradfuse");
  app.set_version_flag("--version", "gradfuse " GRADFUSE_VERSION);
  app.formatter(std::make_shared<HelpFormat>());
  app.require_subcommand(1);
  app.failure_message(explain);
  app.footer(kFooter);
  add_train_command(app);
  add_sample_command(app);
  add_bench_command(app);
  add_info_command(app);
  int exit_code = 0;
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& failure) {
    exit_code = failure.get_exit_code();
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : kExitBadCommandLine;  // prints help and version too, as errors of code 0
  }
  flush_stdout();
  return exit_code;
}

}  // namespace
}  // namespace gradfuse::cli

int main(int argc, char** argv) {
  try {
    return gradfuse::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs("gradfuse: error: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fputs((std::string("gradfuse: error: ") + error.what() + "\n").c_str(), stderr);
  }
  return gradfuse::cli::kExitFailure;
}
