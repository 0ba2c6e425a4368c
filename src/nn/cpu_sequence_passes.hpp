#pragma once
// Embeddings and attention on host memory. float: vector loops. double: plain loops, to check gradients.
#include <vector>

#include "kernels/cpu/loops.hpp"
#include "src/nn/sequence_passes.hpp"

namespace gradfuse::nn {

template <class T>
class CpuSequencePasses final : public SequencePasses<T> {
 public:
  CpuSequencePasses(const cpu::LayerLoops& loops, int threads) : loops_(loops), threads_(threads) {}

  void embed(const SequenceShape& shape, const std::int32_t* ids, const T* tokens, const T* positions, T* y) override;
  void embed_gradient(const SequenceShape& shape, const std::int32_t* ids, const T* y_grad, std::size_t vocabulary,
                      T* token_grad, Destination token_destination, std::size_t max_positions, T* position_grad,
                      Destination position_destination) override;
  void attention(const SequenceShape& shape, const AttentionArrays<T>& arrays) override;
  void attention_gradient(const SequenceShape& shape, const AttentionArrays<T>& arrays, const T* out_grad,
                          T* qkv_grad) override;

 private:
  const cpu::LayerLoops& loops_;
  int threads_;
  std::vector<std::size_t> rows_by_token_, first_row_;  // a counting sort of the ids
  std::vector<T> scratch_;                              // of attention, for each head of each sequence
};

}  // namespace gradfuse::nn
