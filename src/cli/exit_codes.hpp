#pragma once
// What the program's exit code says: 0, or one of these.
#include <CLI/CLI.hpp>
#include <gradfuse/error.hpp>

namespace gradfuse::cli {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitBadCommandLine = 2;  ///< as of shells and getopt programs

/// Calls `check`, which looks at what the flags say. Its errors are those of the command line.
template <class Check>
auto check_command_line(const Check& check) {
  try {
    return check();
  } catch (const Error& error) {
    throw CLI::ValidationError(error.what());
  }
}

}  // namespace gradfuse::cli
