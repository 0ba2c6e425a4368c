#pragma once
// The layers' passes on a CUDA device.
#include <memory>

#include "src/nn/layer_passes.hpp"

namespace gradfuse::nn {

/// `backend` is of a CUDA device. @throws Error  gradfuse was built without CUDA.
std::unique_ptr<LayerPasses<float>> make_cuda_layer_passes(const Backend& backend);

}  // namespace gradfuse::nn
