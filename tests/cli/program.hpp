#pragma once
// Runs the built program as a user would, and a folder for its files.
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gradfuse::cli {

struct Result {
  int exit_code = -1;  ///< 128 + signal if one killed it, as a shell says
  std::string out;
  std::string err;
};

/// Standard output goes to `stdout_path` if given, else into `out`.
Result run_program(const std::vector<std::string>& arguments, const char* stdout_path = nullptr);

/// In a pseudo terminal of 100 columns: `out` holds what the terminal got, error messages included.
Result run_in_terminal(const std::vector<std::string>& arguments, const char* term);

/// Each test has a folder of its own, gone afterwards.
class ProgramTest : public testing::Test {
 protected:
  const test::TemporaryFolder folder_;
};

}  // namespace gradfuse::cli
