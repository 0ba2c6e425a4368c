#pragma once
// `gradfuse train mlp`
#include <CLI/CLI.hpp>

namespace gradfuse::cli {

void add_train_command(CLI::App& app);

}  // namespace gradfuse::cli
