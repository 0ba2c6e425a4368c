#pragma once
// A GPT-style decoder without autograd: forward and backward written out.
#include <gradfuse/backend.hpp>
#include <gradfuse/nn/parameter.hpp>
#include <gradfuse/window.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace gradfuse::nn {

/// A target that says nothing: its position counts in no loss, as in PyTorch.
inline constexpr std::int32_t kIgnoredTarget = -100;

struct TransformerOptions {
  std::size_t vocabulary = 256;
  std::size_t context = 256;  ///< The longest sequence: rows of the position table.
  std::size_t width = 384;    ///< Of the residual stream; a multiple of `heads`.
  std::size_t layers = 6;
  std::size_t heads = 6;
  bool is_tied = true;  ///< The head uses the token embedding; else it has a weight of its own.
  /// Of the parameters that forward and backward read and of the gradients: float32, float16 or bfloat16.
  DType precision = DType::kFloat32;
  /// Keep the input of every so many blocks and work out the rest again in backward (Chen et al. 2016,
  /// arXiv:1604.06174); the gradients have the same bits. 0: keep everything.
  std::size_t checkpoint_every = 0;
  /// Of the initial weights: normal with deviation 0.02, divided by sqrt(2 * layers) where a block adds to the residual
  /// stream (Radford et al. 2019, "Language Models are Unsupervised Multitask Learners").
  std::uint64_t seed = 0;
  std::shared_ptr<const Backend> backend = cpu_backend();
  /// Whether there is an array of gradients; without it there is `accumulate` and `stream`, but no `backward`.
  bool has_gradients = true;
};

/// Sequences of the same length, one after another.
struct TokenBatch {
  std::span<const std::int32_t> inputs;   ///< [sequences * positions], each 0 .. vocabulary - 1
  std::span<const std::int32_t> targets;  ///< As `inputs`: the next token, or kIgnoredTarget.
  std::size_t positions = 0;              ///< 1 .. context
};

/// Bytes, for one micro-batch of `sequences * positions` tokens.
struct TransformerMemory {
  std::size_t parameters = 0;   ///< FP32 master, and the 16-bit copy with its widened panels
  std::size_t gradients = 0;    ///< What `backward` fills, with `has_gradients`.
  std::size_t scratch = 0;      ///< What `stream` needs: the gradients of the largest layer.
  std::size_t activations = 0;  ///< Kept from forward to backward, and scratch.
};

/// Token and position embeddings; blocks of LayerNorm, causal multi-head attention, LayerNorm and a GELU MLP four times
/// as wide, each around a residual; a last LayerNorm; the head. One thread at a time. On a GPU, heads of up to 128
/// elements.
class Transformer {
 public:
  /// @throws Error  an option is out of its range.
  explicit Transformer(const TransformerOptions& options);
  ~Transformer();
  Transformer(Transformer&&) noexcept;
  Transformer& operator=(Transformer&&) noexcept;

  /// The same for the same options: "token_embedding.weight", "position_embedding.weight", "block0.norm1.weight", …
  std::span<const Parameter> parameters() const noexcept;

  /// One micro-batch: overwrites every gradient with that of `loss_scale` times the mean loss of the targets that
  /// count. Without any, the gradients are 0.
  /// @throws Error  before anything changes: sizes that do not fit, a token or target out of range, a loss scale that
  /// is
  ///                not positive and finite.
  void backward(const TokenBatch& batch, float loss_scale = 1.0f);

  /// The same without any array of gradients: products and sums go straight into the window's accumulator, with the
  /// number of targets that count as the weight. `window` is of a set that has this model's parameters, in their order,
  /// and no others; end the micro-batch with `window.add(std::span<const Gradient>{}, {.weight = count})`.
  /// @returns  that count.
  std::size_t accumulate(const TokenBatch& batch, Window& window, float loss_scale = 1.0f);
  /// The same through a scratch of one layer, which the library's add folds as soon as the layer's backward is done:
  /// for gradients that are to be looked at, rounded or sent elsewhere on the way.
  std::size_t stream(const TokenBatch& batch, Window& window, float loss_scale = 1.0f);

  /// In nats, of all targets that counted since the last call.
  double take_loss_sum();

  /// Mean loss in nats of the targets that count. Changes nothing that can be seen.
  double evaluate(const TokenBatch& batch);
  /// Of the last position of one sequence: [vocabulary].
  std::vector<float> next_logits(std::span<const std::int32_t> inputs);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What a model would take, before it is made. @throws Error  as the constructor.
TransformerMemory plan_memory(const TransformerOptions& options, std::size_t sequences, std::size_t positions);

/// Targets of a batch that count.
std::size_t count_targets(std::span<const std::int32_t> targets);

}  // namespace gradfuse::nn
