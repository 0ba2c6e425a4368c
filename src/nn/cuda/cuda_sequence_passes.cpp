#include "src/nn/cuda/cuda_sequence_passes.hpp"

#include <fmt/format.h>

#include <cmath>
#include <gradfuse/error.hpp>

#include "kernels/cuda/layers.hpp"
#include "src/backend/cuda/cuda_backend.hpp"
#include "src/backend/cuda/pass_scope.hpp"
#include "src/backend/device_array.hpp"

namespace gradfuse::nn {
namespace {

cuda::SequenceSize size_of(const SequenceShape& shape) {
  return {shape.sequences, shape.positions, shape.width, shape.heads};
}
bool adds(Destination destination) { return destination == Destination::kAddTo; }

class CudaSequencePasses final : public SequencePasses<float> {
 public:
  explicit CudaSequencePasses(const CudaBackend& backend) : backend_(backend) {}

  void embed(const SequenceShape& shape, const std::int32_t* ids, const float* tokens, const float* positions,
             float* y) override {
    run("embed", [&] { return cuda::embed(target(), size_of(shape), ids, tokens, positions, y); });
  }
  void embed_gradient(const SequenceShape& shape, const std::int32_t* ids, const float* y_grad, std::size_t vocabulary,
                      float* token_grad, Destination token_destination, std::size_t max_positions, float* position_grad,
                      Destination position_destination) override {
    run("token_gradient", [&] {
      return cuda::token_gradient(target(), size_of(shape), ids, y_grad, vocabulary, token_grad,
                                  adds(token_destination));
    });
    run("position_gradient", [&] {
      return cuda::position_gradient(target(), size_of(shape), y_grad, max_positions, position_grad,
                                     adds(position_destination));
    });
  }
  void attention(const SequenceShape& shape, const AttentionArrays<float>& arrays) override {
    const cuda::AttentionArgs args = attention_args(shape, arrays);
    run("attention", [&] { return cuda::attention(target(), args); });
  }
  void attention_gradient(const SequenceShape& shape, const AttentionArrays<float>& arrays, const float* out_grad,
                          float* qkv_grad) override {
    const cuda::AttentionArgs args = attention_args(shape, arrays);
    out_dots_.grow(backend_.memory(), shape.rows() * shape.heads);
    run("attention_gradient",
        [&] { return cuda::attention_gradient(target(), args, out_grad, out_dots_.data(), qkv_grad); });
  }

 private:
  cuda::Target target() const { return backend_.target(); }
  template <class Launch>
  void run(const char* name, Launch launch) const {
    const PassScope scope(name, backend_.device().index);
    check_cuda(launch(), name);
  }
  static cuda::AttentionArgs attention_args(const SequenceShape& shape, const AttentionArrays<float>& arrays) {
    if (shape.head_dim() > cuda::kMaxHeadDim) {
      throw Error(fmt::format("heads of {} elements; attention on a GPU takes up to {}: use more heads",
                              shape.head_dim(), cuda::kMaxHeadDim));
    }
    return {.size = size_of(shape),
            .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim()))),
            .qkv = arrays.qkv,
            .out = arrays.out,
            .log_sums = arrays.log_sums};
  }

  const CudaBackend& backend_;
  DeviceArray<float> out_dots_;  // scratch of attention's gradient
};

}  // namespace

std::unique_ptr<SequencePasses<float>> make_cuda_sequence_passes(const Backend& backend) {
  return std::make_unique<CudaSequencePasses>(static_cast<const CudaBackend&>(backend));
}

}  // namespace gradfuse::nn
