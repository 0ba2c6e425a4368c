#include "src/cli/sample_command.hpp"

#include <cstdio>
#include <gradfuse/error.hpp>
#include <gradfuse/nn/sample.hpp>
#include <gradfuse/train/saved_transformer.hpp>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/backend_flags.hpp"
#include "src/cli/exit_codes.hpp"
#include "src/cli/flag_helpers.hpp"

namespace gradfuse::cli {
namespace {

struct SampleFlags {
  std::string model, prompt = "\n";
  nn::SampleOptions options;
  BackendFlags backend;
};

void run(const SampleFlags& flags) {
  const auto backend = check_command_line([&] { return backend_of(flags.backend); });
  train::SavedTransformer saved = train::load_transformer(flags.model, backend);
  if (saved.options.vocabulary < 256) throw Error(flags.model + ": its vocabulary is not that of bytes");
  std::vector<std::int32_t> prompt;
  for (const char letter : flags.prompt) prompt.push_back(static_cast<unsigned char>(letter));
  check_command_line([&] {
    nn::sample(saved.model, saved.options, prompt, {.tokens = 0, .temperature = flags.options.temperature}, {});
  });
  std::fwrite(flags.prompt.data(), 1, flags.prompt.size(), stdout);
  nn::sample(saved.model, saved.options, prompt, flags.options, [](std::int32_t token) {
    std::fputc(token, stdout);
    std::fflush(stdout);
  });
  std::fputc('\n', stdout);
}

}  // namespace

void add_sample_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sample", "Write text with a model that `train transformer --save` saved");
  const auto flags = std::make_shared<SampleFlags>();
  command->add_option("model", flags->model, "What --save wrote")->type_name("FILE")->required();
  add_flag(*command, "--prompt", "TEXT", flags->prompt,
           "What the text goes on from; the beginning of a line unless given")
      ->default_str("")
      ->group("Text");
  add_flag(*command, "--tokens", "N", flags->options.tokens, "Bytes to write")->check(whole_number(1))->group("Text");
  add_flag(*command, "--temperature", "T", flags->options.temperature,
           "Below 1 the probable gets more probable; 0: always the most probable")
      ->group("Text");
  add_flag(*command, "--top-k", "K", flags->options.top_k, "Only the K most probable; 0: all")
      ->check(whole_number(0))
      ->group("Text");
  add_flag(*command, "--seed", "N", flags->options.seed, "The same seed writes the same")
      ->check(whole_number(0))
      ->group("Text");
  add_device_flag(*command, flags->backend);
  add_backend_flags(*command, flags->backend);
  command->callback([flags] { run(*flags); });
}

}  // namespace gradfuse::cli
