#pragma once
// `gradfuse bench`: fused against unfused on this machine, with the bound.
#include <CLI/CLI.hpp>

namespace gradfuse::cli {

void add_bench_command(CLI::App& app);

}  // namespace gradfuse::cli
