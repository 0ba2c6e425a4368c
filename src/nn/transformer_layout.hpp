#pragma once
// The one list of a Transformer's parameters, and where its activations lie.
#include <gradfuse/nn/transformer.hpp>

#include <cstddef>
#include <vector>

#include "src/nn/parameter_layout.hpp"

namespace gradfuse::nn {

/// Indices of parameters.
struct LinearParameters {
  std::size_t weight, bias;
};
struct BlockParameters {
  LinearParameters norm1, qkv, attention_out, norm2, up, down;
};

struct TransformerLayout : ParameterLayout {
  std::size_t token_embedding = 0, position_embedding = 0, head = 0;  // tied: the head is the token embedding
  std::vector<BlockParameters> blocks;
  LinearParameters norm{};
  std::size_t largest_layer = 0;  // elements, with room for each tensor to begin at a cache line
};

/// `options` have been checked.
TransformerLayout make_layout(const TransformerOptions& options);
/// Flat [layout.numel].
std::vector<float> initial_parameters(const TransformerOptions& options, const TransformerLayout& layout);

inline constexpr std::size_t kMlpFactor = 4;  // how much wider the MLP is than the residual stream

/// Offsets into one array, each at a cache line.
class ArenaPlan {
 public:
  std::size_t add(std::size_t numel) {
    const std::size_t offset = numel_;
    numel_ += (numel + 15) / 16 * 16;
    return offset;
  }
  std::size_t numel() const noexcept { return numel_; }

 private:
  std::size_t numel_ = 0;
};

/// Offsets into the arena of T; of statistics, into that of FP64.
struct BlockActivations {
  std::size_t input;  // of a block that is not the first of its segment
  std::size_t normed1, qkv, attended, log_sums, middle, normed2, up, activated;
  std::size_t mean1, reciprocal1, mean2, reciprocal2;
};
struct TransformerActivations {
  std::size_t segment_length = 1;           // blocks between two inputs that are kept
  std::vector<std::size_t> segment_inputs;  // kept from forward to backward
  std::vector<BlockActivations> blocks;     // of one segment
  std::size_t output = 0, normed = 0, logits = 0;
  std::size_t mean = 0, reciprocal = 0, row_losses = 0;
  std::size_t stream_grad = 0, row_grad = 0, qkv_grad = 0, up_grad = 0;
  ArenaPlan values, statistics;
};
TransformerActivations plan_activations(const TransformerOptions& options, std::size_t sequences,
                                        std::size_t positions);

}  // namespace gradfuse::nn
