// In place of the layers' passes on CUDA where it is not built.
#include <gradfuse/backend.hpp>
#include <gradfuse/error.hpp>

#include "src/nn/cuda/cuda_layer_passes.hpp"

namespace gradfuse::nn {

std::unique_ptr<LayerPasses<float>> make_cuda_layer_passes(const Backend&) { throw Error("no CUDA: " + why_no_cuda()); }

}  // namespace gradfuse::nn
