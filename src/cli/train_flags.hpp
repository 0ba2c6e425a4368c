#pragma once
// The flags of `gradfuse train mlp`, and the options that they stand for.
#include <gradfuse/train/train_mlp.hpp>

#include <CLI/CLI.hpp>

#include "src/cli/backend_flags.hpp"
#include "src/cli/step_flags.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace gradfuse::cli {

/// What is empty has a default that depends on other flags.
struct TrainFlags {
  std::size_t micro_batch = 32;
  std::size_t accum_steps = 4;
  std::optional<std::size_t> epochs;
  std::string activation = "gelu";
  std::string norm = "none";
  std::string lr_scaling = "none";
  StepFlags step;
  bool is_unfused = false;
  std::uint64_t seed = 0;
  BackendFlags backend;
  std::string data;
  std::string log;
  bool is_quiet = false;
  bool is_comparison = false;
};

/// A comparison has its own: `compare_large_batch` says why.
StepDefaults step_defaults(const TrainFlags& flags);

/// Puts the flags on the command. `flags` must live as long as the command.
void add_train_flags(CLI::App& command, TrainFlags& flags);

/// @throws Error  as `backend_of`.
train::MlpTrainOptions options_of(const TrainFlags& flags);

/// For people: "seed 0, gelu, norm none, adamw lr 0.003 eps 1e-08; cpu avx512, 2 threads".
std::string describe_settings(const TrainFlags& flags, const train::MlpTrainOptions& options, std::size_t num_rows);

}  // namespace gradfuse::cli
