// In place of the nets' passes on CUDA where it is not built.
#include <gradfuse/backend.hpp>
#include <gradfuse/error.hpp>

#include "src/nn/cuda/cuda_layer_passes.hpp"
#include "src/nn/cuda/cuda_sequence_passes.hpp"

namespace gradfuse::nn {

std::unique_ptr<LayerPasses<float>> make_cuda_layer_passes(const Backend&) { throw Error("no CUDA: " + why_no_cuda()); }
std::unique_ptr<SequencePasses<float>> make_cuda_sequence_passes(const Backend&) {
  throw Error("no CUDA: " + why_no_cuda());
}

}  // namespace gradfuse::nn
