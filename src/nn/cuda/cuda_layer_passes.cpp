#include "src/nn/cuda/cuda_layer_passes.hpp"

#include "kernels/cuda/layers.hpp"
#include "src/backend/cuda/cuda_backend.hpp"
#include "src/backend/cuda/pass_scope.hpp"
#include "src/nn/cuda/cublas.hpp"

namespace gradfuse::nn {
namespace {

cuda::MatrixSize size_of(const Extent& extent) { return {extent.rows, extent.cols}; }
cuda::ActivationKind kind_of(Activation activation) {
  return activation == Activation::kRelu ? cuda::ActivationKind::kRelu : cuda::ActivationKind::kGelu;
}
cuda::BatchNormArgs batch_norm_args(const Extent& extent, const NormParameters<float>& params, float* x,
                                    const BatchNormed<float>& kept) {
  return {.size = size_of(extent),
          .weight = params.weight,
          .bias = params.bias,
          .x = x,
          .x_hat = kept.x_hat,
          .mean = kept.mean,
          .reciprocal_deviation = kept.reciprocal_deviation,
          .running_mean = kept.running_mean,
          .running_var = kept.running_var};
}

class CudaLayerPasses final : public LayerPasses<float> {
 public:
  explicit CudaLayerPasses(const CudaBackend& backend)
      : backend_(backend), cublas_(static_cast<const CudaMemory&>(backend.memory())) {}

  void gemm(const GemmSpec& spec, const float* a, const float* b, float* c) override {
    const PassScope scope("gemm", device());
    cublas_.multiply(spec, a, b, c);
  }
  void fill_rows(const Extent& extent, const float* row, float* y) override {
    run("fill_rows", [&] { return cuda::fill_rows(target(), size_of(extent), row, y); });
  }
  void column_sums(const Extent& extent, const float* x, float* sums) override {
    run("column_sums", [&] { return cuda::column_sums(target(), size_of(extent), x, sums); });
  }
  void activate(Activation activation, std::size_t numel, const float* x, float* y) override {
    run("activate", [&] { return cuda::activate(target(), kind_of(activation), numel, x, y); });
  }
  void activation_gradient(Activation activation, std::size_t numel, const float* x, float* grad) override {
    run("activation_gradient",
        [&] { return cuda::activation_gradient(target(), kind_of(activation), numel, x, grad); });
  }
  void layer_norm(const Extent& extent, const NormParameters<float>& params, float* x,
                  const LayerNormed<float>& kept) override {
    run("layer_norm", [&] {
      return cuda::layer_norm(target(), {.size = size_of(extent),
                                         .weight = params.weight,
                                         .bias = params.bias,
                                         .x = x,
                                         .x_hat = kept.x_hat,
                                         .reciprocal_deviation = kept.reciprocal_deviation});
    });
  }
  void layer_norm_gradient(const Extent& extent, const float* weight, const LayerNormed<float>& kept, float* grad,
                           const NormGradients<float>& gradients) override {
    norm_parameter_gradients(extent, kept.x_hat, grad, gradients);
    run("layer_norm_gradient", [&] {
      return cuda::layer_norm_gradient(target(), {.size = size_of(extent),
                                                  .weight = weight,
                                                  .x_hat = kept.x_hat,
                                                  .reciprocal_deviation = kept.reciprocal_deviation,
                                                  .grad = grad});
    });
  }
  void batch_norm(const Extent& extent, const NormParameters<float>& params, double momentum, float* x,
                  const BatchNormed<float>& kept) override {
    run("batch_norm", [&] { return cuda::batch_norm(target(), batch_norm_args(extent, params, x, kept), momentum); });
  }
  void batch_norm_inference(const Extent& extent, const NormParameters<float>& params, float* x,
                            const BatchNormed<float>& kept) override {
    run("batch_norm_inference",
        [&] { return cuda::batch_norm_inference(target(), batch_norm_args(extent, params, x, kept)); });
  }
  void batch_norm_gradient(const Extent& extent, const float* weight, const BatchNormed<float>& kept, float* grad,
                           const NormGradients<float>& gradients) override {
    norm_parameter_gradients(extent, kept.x_hat, grad, gradients);
    run("batch_norm_gradient", [&] {
      return cuda::batch_norm_gradient(target(), {.size = size_of(extent),
                                                  .weight = weight,
                                                  .x_hat = kept.x_hat,
                                                  .reciprocal_deviation = kept.reciprocal_deviation,
                                                  .grad = grad});
    });
  }
  void cross_entropy(const Extent& extent, const std::int32_t* labels, float loss_scale, float* logits,
                     double* row_losses) override {
    const float row_scale = loss_scale / static_cast<float>(extent.rows);
    run("cross_entropy",
        [&] { return cuda::cross_entropy(target(), size_of(extent), labels, row_scale, logits, row_losses); });
  }
  void add_losses(std::size_t rows, const double* row_losses, double* loss_sum) override {
    run("add_losses", [&] { return cuda::add_losses(target(), rows, row_losses, loss_sum); });
  }

 private:
  int device() const { return backend_.device().index; }
  cuda::Target target() const { return backend_.target(); }

  template <class Launch>
  void run(const char* name, Launch launch) const {
    const PassScope scope(name, device());
    check_cuda(launch(), name);
  }
  void norm_parameter_gradients(const Extent& extent, const float* x_hat, const float* y_grad,
                                const NormGradients<float>& to) const {
    run("norm_parameter_gradients",
        [&] { return cuda::norm_parameter_gradients(target(), size_of(extent), x_hat, y_grad, to.weight, to.bias); });
  }

  const CudaBackend& backend_;
  Cublas cublas_;
};

}  // namespace

std::unique_ptr<LayerPasses<float>> make_cuda_layer_passes(const Backend& backend) {
  return std::make_unique<CudaLayerPasses>(static_cast<const CudaBackend&>(backend));
}

}  // namespace gradfuse::nn
