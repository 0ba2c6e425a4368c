#include "src/cli/transformer_command.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <gradfuse/error.hpp>
#include <gradfuse/train/saved_transformer.hpp>
#include <gradfuse/train/train_log.hpp>
#include <gradfuse/train/train_transformer.hpp>
#include <memory>
#include <optional>
#include <system_error>

#include "src/cli/backend_flags.hpp"
#include "src/cli/choices.hpp"
#include "src/cli/data_file.hpp"
#include "src/cli/exit_codes.hpp"
#include "src/cli/flag_helpers.hpp"
#include "src/cli/step_flags.hpp"
#include "src/cli/terminal.hpp"

namespace gradfuse::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  gradfuse train transformer
      the bundled novel, byte by byte; fp32, gradients straight into the accumulator
  gradfuse train transformer --width 384 --layers 6 --heads 6 --context 256 --plan
      what a larger model would take
  gradfuse train transformer --route fused --precision bf16 --log run.jsonl
      through an array of bf16 gradients; each step as a line of JSON
  gradfuse train transformer --text FILE --checkpoint-every 2
      another text of any size; less memory for activations
  gradfuse train transformer --save novel.safetensors && gradfuse sample novel.safetensors --prompt "Anne "
      writes in the style of what it has read

Units: sequences, tokens, nats a token (loss), bytes (log) and MiB (screen), seconds.
The same flags, threads and machine give the same bits; the digest tells.)";

struct TransformerFlags {
  std::size_t micro_batch = 8, accum_steps = 4, steps = 300, validate_every = 50;
  std::size_t context = 128, width = 128, layers = 4, heads = 4, checkpoint_every = 0;
  std::optional<std::size_t> vocabulary;
  bool has_own_head = false, is_plan = false, is_quiet = false;
  std::string route = "gemm", text, tokens, log, save;
  StepFlags step;
  std::uint64_t seed = 0;
  BackendFlags backend;
};

StepDefaults step_defaults() {
  return {.precision = "fp32",
          .adam_lr = 2e-3,
          .sgd_lr = 0.1,
          .eps = 1e-8,
          .dynamic_scaler = LossScaler{{.min_scale = 0x1p-10}}};
}

void add_flags(CLI::App& command, TransformerFlags& flags) {
  const auto count = [&](const char* name, const char* type, std::size_t& value, const char* group,
                         const std::string& description, std::size_t least = 1) {
    add_flag(command, name, type, value, description)->check(whole_number(least))->group(group);
  };
  count("--micro-batch", "SEQUENCES", flags.micro_batch, "Batches", "Sequences of one forward and backward pass");
  count("--accum-steps", "N", flags.accum_steps, "Batches", "Micro-batches accumulated before each optimizer step");
  count("--steps", "N", flags.steps, "Batches", "Optimizer steps");
  add_flag(command, "--seed", "N", flags.seed, "Of the initial parameters and of the places in the text")
      ->check(whole_number(0))
      ->group("Batches");
  count("--context", "TOKENS", flags.context, "Model", "Length of the sequences");
  count("--width", "N", flags.width, "Model", "Of the residual stream; a multiple of --heads");
  count("--layers", "N", flags.layers, "Model", "Blocks");
  count("--heads", "N", flags.heads, "Model", "Of the attention");
  add_flag(command, "--vocabulary", "N", flags.vocabulary, "256",
           "Token ids there are; 256 for a text, to be given with --tokens")
      ->check(whole_number(1))
      ->group("Model");
  command.add_flag("--own-head", flags.has_own_head, "The head has a weight of its own, not the token embedding's")
      ->group("Model");
  count("--checkpoint-every", "BLOCKS", flags.checkpoint_every, "Model",
        "Keep the input of every so many blocks and work out the rest again in backward; 0: keep all", 0);
  add_precision_flags(command, flags.step, step_defaults(), {});
  add_optimizer_flags(command, flags.step, step_defaults(), {});
  add_flag(command, "--route", "unfused|fused|gemm|streamed", flags.route,
           "unfused, fused: through an array of gradients, with separate passes or fused ones; gemm: products straight "
           "into the accumulator, no array; streamed: layer by layer through a scratch")
      ->check(one_of({"unfused", "fused", "gemm", "streamed"}))
      ->group("Optimizer");
  add_device_flag(command, flags.backend);
  add_backend_flags(command, flags.backend);
  CLI::Option* text =
      command.add_option("--text", flags.text, "Text to learn, a token a byte; the bundled novel unless given");
  text->type_name("FILE")->group("Run");
  command.add_option("--tokens", flags.tokens, "Tokens to learn: uint16, little-endian")
      ->type_name("FILE")
      ->group("Run")
      ->excludes(text);
  count("--validate-every", "STEPS", flags.validate_every, "Run",
        "Steps between two looks at the last tenth of the text; 0: at the end only", 0);
  command.add_option("--log", flags.log, "Write one JSON line a step, and a summary as the last")
      ->type_name("FILE")
      ->group("Run");
  command
      .add_option("--save", flags.save, "Save the parameters here at the end, as safetensors; for `gradfuse sample`")
      ->type_name("FILE")
      ->group("Run");
  command.add_flag("--plan", flags.is_plan, "Print the memory that this would take, and stop")->group("Run");
  command.add_flag("--quiet", flags.is_quiet, "Print the last line only")->group("Run");
}

train::TransformerTrainOptions options_of(const TransformerFlags& flags) {
  const StepDefaults defaults = step_defaults();
  if (!flags.tokens.empty() && !flags.vocabulary) {
    throw Error("--tokens needs --vocabulary: one more than the largest id in the file, or more");
  }
  return {.model = {.vocabulary = flags.vocabulary.value_or(256),
                    .context = flags.context,
                    .width = flags.width,
                    .layers = flags.layers,
                    .heads = flags.heads,
                    .is_tied = !flags.has_own_head,
                    .precision = precision_of(flags.step, defaults),
                    .checkpoint_every = flags.checkpoint_every,
                    .seed = flags.seed,
                    .backend = backend_of(flags.backend),
                    .has_gradients = flags.route == "unfused" || flags.route == "fused"},
          .micro_batch = flags.micro_batch,
          .accum_steps = flags.accum_steps,
          .steps = flags.steps,
          .route = flags.route == "unfused" ? train::Route::kUnfused
                   : flags.route == "fused" ? train::Route::kFused
                   : flags.route == "gemm"  ? train::Route::kGemm
                                            : train::Route::kStreamed,
          .seed = flags.seed,
          .optimizer = optimizer_of(flags.step, defaults),
          .max_grad_norm = max_grad_norm_of(flags.step),
          .loss_scaler = loss_scaler_of(flags.step, defaults),
          .validate_every = flags.validate_every};
}

double mebibytes(std::size_t num_bytes) { return static_cast<double>(num_bytes) / (1 << 20); }

/// By micro-batch: 1, 2, 4, ... and the one asked for.
void print_plan(const train::TransformerTrainOptions& options) {
  const nn::TransformerMemory one = nn::plan_memory(options.model, 1, options.model.context);
  const std::size_t numel = one.parameters / (options.model.precision == DType::kFloat32 ? 4 : 10);
  const std::size_t states = std::holds_alternative<SgdOptions>(options.optimizer) ? 1 : 2;
  fmt::print(
      "{} parameters, {}\n"
      "  parameters   {:>9.1f} MiB\n"
      "  gradients    {:>9.1f} MiB{}\n"
      "  accumulator  {:>9.1f} MiB\n"
      "  optimizer    {:>9.1f} MiB\n",
      numel, dtype_name(options.model.precision), mebibytes(one.parameters),
      mebibytes(options.route == train::Route::kStreamed ? one.scratch : one.gradients),
      options.route == train::Route::kGemm       ? ": they go straight into the accumulator"
      : options.route == train::Route::kStreamed ? ": of the largest layer"
                                                 : "",
      mebibytes(4 * numel), mebibytes(4 * states * numel));
  for (std::size_t sequences = 1;; sequences = std::min(2 * sequences, options.micro_batch)) {
    const nn::TransformerMemory memory = nn::plan_memory(options.model, sequences, options.model.context);
    fmt::print("  activations  {:>9.1f} MiB with {} sequence{} of {}\n", mebibytes(memory.activations), sequences,
               sequences == 1 ? "" : "s", options.model.context);
    if (sequences == options.micro_batch) break;
  }
}

void print_heading(const TransformerFlags& flags, const train::TransformerTrainOptions& options,
                   const nn::TokenText& text, const std::string& name) {
  const nn::TransformerMemory memory = nn::plan_memory(options.model, options.micro_batch, options.model.context);
  fmt::print(
      "training on {} ({} tokens): {} micro-batches of {} sequences of {} a step, {}, route {}\n"
      "width {}, {} layers, {} heads, {} lr {} {}; {}; activations {:.1f} MiB\n",
      name, text.size(), options.accum_steps, options.micro_batch, options.model.context,
      dtype_name(options.model.precision), flags.route, options.model.width, options.model.layers, options.model.heads,
      flags.step.optimizer, std::visit([](const auto& o) { return o.lr; }, options.optimizer),
      describe(options.optimizer), describe_backend(*options.model.backend), mebibytes(memory.activations));
}

void run(const TransformerFlags& flags) {
  const train::TransformerTrainOptions options = check_command_line([&] {
    train::TransformerTrainOptions made = options_of(flags);
    nn::plan_memory(made.model, 1, 1);  // checks the model
    return made;
  });
  if (flags.is_plan) return print_plan(options);
  const std::filesystem::path path = !flags.tokens.empty() ? std::filesystem::path(flags.tokens)
                                     : !flags.text.empty() ? std::filesystem::path(flags.text)
                                                           : default_data_file("persuasion.txt");
  check_command_line([&] { refuse_to_overwrite(path, flags.log); });
  check_command_line([&] { refuse_to_overwrite(path, flags.save); });
  const nn::TokenText text = flags.tokens.empty() ? nn::TokenText::bytes_of(path) : nn::TokenText::tokens_of(path);
  check_command_line([&] { train::check_options(options, text); });
  // oneDNN takes OpenMP's number.
  if (const int threads = describe(*options.model.backend).threads; threads > 0) omp_set_num_threads(threads);
  std::optional<train::TrainLog> log;
  if (!flags.log.empty()) log.emplace(flags.log);
  if (!flags.is_quiet) print_heading(flags, options, text, path.filename().string());

  const bool has_line = !flags.is_quiet && is_stdout_terminal();
  const train::TransformerTrainSummary summary = train::train_transformer(
      options, text,
      {.on_step =
           [&](const train::StepRecord& step) {
             if (log) log->write(step);
             if (!has_line) return;
             redraw_line(fmt::format("{}/{}  loss {:.4f}  norm {:.3f}{}  {:.0f} tokens/s", step.step, options.steps,
                                     step.loss, step.report.norm, step.report.is_skipped() ? "  skipped" : "",
                                     step.samples_per_second * static_cast<double>(options.model.context)));
           },
       .on_validation =
           [&](std::size_t step, double loss) {
             if (flags.is_quiet) return;
             if (has_line) erase_line();
             fmt::print("step {:>{}}/{}  validation loss {:.4f} ({:.3f} bits a token)\n", step,
                        std::to_string(options.steps).size(), options.steps, loss, loss / std::log(2.0));
             std::fflush(stdout);
           },
       .on_trained =
           [&](const nn::Transformer& model) {
             if (!flags.save.empty()) train::save_transformer(flags.save, model, options.model);
           }});
  if (log) log->finish(options, summary);
  fmt::print(
      "validation loss {:.4f} (unigram entropy {:.4f}), peak memory {:.1f} MiB, {} steps ({} skipped) in {:.1f} s, "
      "{:.0f} tokens/s, parameters {}\n",
      summary.validation_loss, summary.unigram_entropy, mebibytes(summary.peak_bytes), summary.steps,
      summary.skipped_steps, summary.seconds, summary.tokens_per_second, summary.parameters_digest);
}

}  // namespace

void add_train_transformer_command(CLI::App& train) {
  CLI::App* command = train.add_subcommand("transformer", "Train a GPT-style decoder on a text");
  const auto flags = std::make_shared<TransformerFlags>();
  add_flags(*command, *flags);
  command->footer(kExamples);
  command->callback([flags] { run(*flags); });
}

}  // namespace gradfuse::cli
