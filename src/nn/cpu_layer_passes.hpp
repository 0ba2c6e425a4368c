#pragma once
// The layers' passes on host memory. float: vector loops where arithmetic is the limit, oneDNN's matrix product.
// double: plain loops, to check gradients.
#include <vector>

#include "kernels/cpu/loops.hpp"
#include "src/nn/layer_passes.hpp"

namespace gradfuse::nn {

template <class T>
class CpuLayerPasses final : public LayerPasses<T> {
 public:
  CpuLayerPasses(const cpu::LayerLoops& loops, int threads) : loops_(loops), threads_(threads) {}

  void gemm(const GemmSpec& spec, const T* a, const T* b, T* c) override;
  void add_row(const Extent& extent, const T* x, const T* row, T* y) override;
  void column_sums(const Extent& extent, const T* x, T* sums, Destination destination) override;
  void activate(Activation activation, std::size_t numel, const T* x, T* y) override;
  void activation_gradient(Activation activation, std::size_t numel, const T* x, T* grad) override;
  void layer_norm(const Extent& extent, const NormParameters<T>& params, const T* x, T* y,
                  const RowStatistics& kept) override;
  void layer_norm_gradient(const Extent& extent, const T* weight, const T* x, const RowStatistics& kept,
                           const T* y_grad, T* x_grad, Destination destination,
                           const NormGradients<T>& gradients) override;
  void batch_norm(const Extent& extent, const NormParameters<T>& params, double momentum, T* x,
                  const BatchNormed<T>& kept) override;
  void batch_norm_inference(const Extent& extent, const NormParameters<T>& params, T* x,
                            const BatchNormed<T>& kept) override;
  void batch_norm_gradient(const Extent& extent, const T* weight, const BatchNormed<T>& kept, T* grad,
                           const NormGradients<T>& gradients) override;
  void cross_entropy(const Extent& extent, const std::int32_t* labels, T row_scale, T* logits,
                     double* row_losses) override;
  void add_losses(std::size_t rows, const double* row_losses, double* loss_sum) override;

 private:
  const cpu::LayerLoops& loops_;
  int threads_;
  Gemm gemm_;
  std::vector<T> mean_grad_, mean_product_;  // scratch of batch normalisation, by column
};

}  // namespace gradfuse::nn
