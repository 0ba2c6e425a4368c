#pragma once
// Training an `nn::Transformer` on a text through micro-batches: options, what each step tells, and the result.
#include <gradfuse/nn/token_text.hpp>
#include <gradfuse/nn/transformer.hpp>
#include <gradfuse/train/train_mlp.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace gradfuse::train {

/// How gradients become a step: through an array of 16-bit gradients and the separate passes, through it and the fused
/// ones; or without it, products and sums going straight into the window's accumulator, or layer by layer through a
/// scratch that is folded into it.
enum class Route : std::uint8_t { kUnfused, kFused, kGemm, kStreamed };

struct TransformerTrainOptions {
  nn::TransformerOptions model;  ///< `has_gradients` is what the route needs, whatever is given.
  std::size_t micro_batch = 4;   ///< Sequences of `model.context` tokens.
  std::size_t accum_steps = 4;   ///< Micro-batches of a window.
  std::size_t steps = 200;
  Route route = Route::kGemm;
  std::uint64_t seed = 0;  ///< Of which sequences are taken; the initial parameters have `model.seed`.
  UnfusedChain::Options optimizer = AdamWOptions{.lr = 1e-3};
  std::optional<double> max_grad_norm = 1.0;
  LossScaler loss_scaler = LossScaler::off();
  std::size_t validate_every = 50;  ///< Steps between two looks at the validation text; 0: at the end only.
};

struct TransformerTrainSummary {
  double validation_loss = 0;  ///< Mean in nats a token.
  double unigram_entropy = 0;  ///< Of the validation text, in nats: what knowing the frequencies of tokens alone gives.
  double seconds = 0;          ///< In forward, backward and steps.
  double samples_per_second = 0, tokens_per_second = 0;
  std::size_t peak_bytes = 0;  ///< Resident memory of the process.
  std::size_t steps = 0, skipped_steps = 0;
  float loss_scale = 1.0f;
  std::string parameters_digest = {};
};

struct TransformerTrainCallbacks {
  std::function<void(const StepRecord&)> on_step = {};
  std::function<void(std::size_t step, double validation_loss)> on_validation = {};
  std::function<void(const nn::Transformer&)> on_trained = {};  ///< Before the summary is made.
};

/// @throws Error  a count is 0, a token does not fit into the vocabulary, or the text is too short: nine tenths of it
/// are
///                for training, the rest for validation, and both need `model.context` + 1 tokens.
void check_options(const TransformerTrainOptions& options, const nn::TokenText& text);

/// Trains on sequences from random places of the text's first nine tenths, and evaluates on up to 32 that are spread
/// over the rest. The same options, text, machine and number of threads give the same bits.
/// @throws Error  as `check_options`; or training has diverged: a step is skipped at the floor of the loss scale.
TransformerTrainSummary train_transformer(const TransformerTrainOptions& options, const nn::TokenText& text,
                                          const TransformerTrainCallbacks& callbacks = {});

}  // namespace gradfuse::train
