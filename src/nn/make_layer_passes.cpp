// Which passes belong to a backend's memory.
#include <gradfuse/error.hpp>

#include "src/backend/cpu_backend.hpp"
#include "src/nn/cpu_layer_passes.hpp"
#include "src/nn/cpu_sequence_passes.hpp"
#include "src/nn/cuda/cuda_layer_passes.hpp"
#include "src/nn/cuda/cuda_sequence_passes.hpp"

namespace gradfuse::nn {
namespace {

const cpu::LayerLoops& layer_loops(const Backend& backend) {
  // Another backend may stand before the CPU's, as in tests.
  const auto* cpu_backend = dynamic_cast<const CpuBackend*>(&backend);
  return cpu_backend == nullptr ? cpu::available_loops().front()->layers : cpu_backend->loops().layers;
}

}  // namespace

template <>
std::unique_ptr<LayerPasses<float>> make_layer_passes(const Backend& backend) {
  if (backend.device().kind == Device::Kind::kCuda) return make_cuda_layer_passes(backend);
  return std::make_unique<CpuLayerPasses<float>>(layer_loops(backend), describe(backend).threads);
}

template <>
std::unique_ptr<LayerPasses<double>> make_layer_passes(const Backend& backend) {
  if (backend.device().kind == Device::Kind::kCuda) throw Error("nets in float64 run on the CPU only");
  return std::make_unique<CpuLayerPasses<double>>(layer_loops(backend), describe(backend).threads);
}

template <>
std::unique_ptr<SequencePasses<float>> make_sequence_passes(const Backend& backend) {
  if (backend.device().kind == Device::Kind::kCuda) return make_cuda_sequence_passes(backend);
  return std::make_unique<CpuSequencePasses<float>>(layer_loops(backend), describe(backend).threads);
}

template <>
std::unique_ptr<SequencePasses<double>> make_sequence_passes(const Backend& backend) {
  if (backend.device().kind == Device::Kind::kCuda) throw Error("nets in float64 run on the CPU only");
  return std::make_unique<CpuSequencePasses<double>>(layer_loops(backend), describe(backend).threads);
}

}  // namespace gradfuse::nn
