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
bool adds(Destination destination) { return destination == Destination::kAddTo; }
cuda::NormParameterGradients targets(const NormGradients<float>& to) {
  return {to.weight, to.bias, adds(to.destination)};
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
  void add_row(const Extent& extent, const float* x, const float* row, float* y) override {
    run("add_row", [&] { return cuda::add_row(target(), size_of(extent), x, row, y); });
  }
  void column_sums(const Extent& extent, const float* x, float* sums, Destination destination) override {
    run("column_sums", [&] { return cuda::column_sums(target(), size_of(extent), x, sums, adds(destination)); });
  }
  void activate(Activation activation, std::size_t numel, const float* x, float* y) override {
    run("activate", [&] { return cuda::activate(target(), kind_of(activation), numel, x, y); });
  }
  void activation_gradient(Activation activation, std::size_t numel, const float* x, float* grad) override {
    run("activation_gradient",
        [&] { return cuda::activation_gradient(target(), kind_of(activation), numel, x, grad); });
  }
  void layer_norm(const Extent& extent, const NormParameters<float>& params, const float* x, float* y,
                  const RowStatistics& kept) override {
    run("layer_norm", [&] {
      return cuda::layer_norm(target(), {.size = size_of(extent),
                                         .weight = params.weight,
                                         .bias = params.bias,
                                         .x = x,
                                         .y = y,
                                         .mean = kept.mean,
                                         .reciprocal_deviation = kept.reciprocal_deviation});
    });
  }
  void layer_norm_gradient(const Extent& extent, const float* weight, const float* x, const RowStatistics& kept,
                           const float* y_grad, float* x_grad, Destination destination,
                           const NormGradients<float>& gradients) override {
    const cuda::LayerNormGradientArgs args{.size = size_of(extent),
                                           .weight = weight,
                                           .x = x,
                                           .mean = kept.mean,
                                           .reciprocal_deviation = kept.reciprocal_deviation,
                                           .y_grad = y_grad,
                                           .x_grad = x_grad,
                                           .adds = adds(destination)};
    run("layer_norm_parameter_gradients",
        [&] { return cuda::layer_norm_parameter_gradients(target(), args, targets(gradients)); });
    run("layer_norm_gradient", [&] { return cuda::layer_norm_gradient(target(), args); });
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
    run("batch_norm_parameter_gradients", [&] {
      return cuda::batch_norm_parameter_gradients(target(), size_of(extent), kept.x_hat, grad, targets(gradients));
    });
    run("batch_norm_gradient", [&] {
      return cuda::batch_norm_gradient(target(), {.size = size_of(extent),
                                                  .weight = weight,
                                                  .x_hat = kept.x_hat,
                                                  .reciprocal_deviation = kept.reciprocal_deviation,
                                                  .grad = grad});
    });
  }
  void cross_entropy(const Extent& extent, const std::int32_t* labels, float row_scale, float* logits,
                     double* row_losses) override {
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

  const CudaBackend& backend_;
  Cublas cublas_;
};

}  // namespace

std::unique_ptr<LayerPasses<float>> make_cuda_layer_passes(const Backend& backend) {
  return std::make_unique<CudaLayerPasses>(static_cast<const CudaBackend&>(backend));
}

}  // namespace gradfuse::nn
