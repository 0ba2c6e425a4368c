#pragma once
// `gradfuse info`
#include <CLI/CLI.hpp>

namespace gradfuse::cli {

void add_info_command(CLI::App& app);

}  // namespace gradfuse::cli
