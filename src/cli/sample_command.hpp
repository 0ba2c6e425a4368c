#pragma once
// `gradfuse sample`.
#include <CLI/CLI.hpp>

namespace gradfuse::cli {

void add_sample_command(CLI::App& app);

}  // namespace gradfuse::cli
