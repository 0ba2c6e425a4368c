#pragma once
// `gradfuse train transformer`.
#include <CLI/CLI.hpp>

namespace gradfuse::cli {

void add_train_transformer_command(CLI::App& train);

}  // namespace gradfuse::cli
