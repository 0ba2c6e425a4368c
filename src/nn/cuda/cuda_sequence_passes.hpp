#pragma once
// Embeddings and attention on a CUDA device.
#include <memory>

#include "src/nn/sequence_passes.hpp"

namespace gradfuse::nn {

/// `backend` is of a CUDA device. @throws Error  gradfuse was built without CUDA.
std::unique_ptr<SequencePasses<float>> make_cuda_sequence_passes(const Backend& backend);

}  // namespace gradfuse::nn
