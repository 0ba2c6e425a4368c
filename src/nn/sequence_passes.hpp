#pragma once
// What a Transformer does beside the layers that it shares with other nets: embeddings and causal attention.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/backend/backend.hpp"
#include "src/nn/gemm.hpp"

namespace gradfuse::nn {

/// Token ids and activations have a row for each position of each sequence, sequence after sequence.
struct SequenceShape {
  std::size_t sequences = 0;
  std::size_t positions = 0;  // of each sequence
  std::size_t width = 0;      // of the model: heads * head_dim
  std::size_t heads = 1;

  std::size_t rows() const noexcept { return sequences * positions; }
  std::size_t head_dim() const noexcept { return width / heads; }
};

/// What attention reads and keeps: qkv [rows, 3 * width] (queries, keys, values, each head by head), out [rows, width],
/// log_sums [sequences, heads, positions] of the exponentials of the scores.
template <class T>
struct AttentionArrays {
  const T* qkv;
  T* out;
  T* log_sums;
};

/// As LayerPasses: memory of one backend, in order with its passes.
template <class T>
class SequencePasses {
 public:
  virtual ~SequencePasses() = default;

  /// y [rows, width] = tokens [vocabulary, width] of each id + positions [>= positions, width].
  virtual void embed(const SequenceShape& shape, const std::int32_t* ids, const T* tokens, const T* positions,
                     T* y) = 0;
  /// Gradients of both tables. A token's is the sum of its rows in their order, then added or written; with
  /// kOverwrite, tokens that do not occur get 0. Positions past the sequences' end likewise.
  virtual void embed_gradient(const SequenceShape& shape, const std::int32_t* ids, const T* y_grad,
                              std::size_t vocabulary, T* token_grad, Destination token_destination,
                              std::size_t max_positions, T* position_grad, Destination position_destination) = 0;

  /// softmax(q k^T / sqrt(head_dim)) v, where a position sees itself and what came before; no matrix of positions x
  /// positions exists.
  virtual void attention(const SequenceShape& shape, const AttentionArrays<T>& arrays) = 0;
  /// qkv_grad [rows, 3 * width] from out_grad [rows, width].
  virtual void attention_gradient(const SequenceShape& shape, const AttentionArrays<T>& arrays, const T* out_grad,
                                  T* qkv_grad) = 0;
};

/// For a backend's memory. `backend` must outlive it. T: float; double on the CPU.
template <class T>
std::unique_ptr<SequencePasses<T>> make_sequence_passes(const Backend& backend);
template <>
std::unique_ptr<SequencePasses<float>> make_sequence_passes(const Backend& backend);
template <>
std::unique_ptr<SequencePasses<double>> make_sequence_passes(const Backend& backend);

}  // namespace gradfuse::nn
