#include "src/backend/cuda/check.hpp"

#include <fmt/format.h>

#include <array>
#include <gradfuse/error.hpp>

namespace gradfuse {
namespace {

/// The last passes that this thread queued, the newest first.
thread_local std::array<const char*, 4> queued_passes{};

std::string last_passes() {
  std::string names;
  for (const char* name : queued_passes) {
    if (name != nullptr) names += names.empty() ? name : fmt::format(", {}", name);
  }
  return names.empty() ? "none" : names;
}

}  // namespace

void check_cuda(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // an error that does not stick must not be taken for that of a later call
  throw Error(fmt::format("CUDA: {} failed: {} ({}); passes queued by this thread, the newest first: {}", what,
                          cudaGetErrorString(status), cudaGetErrorName(status), last_passes()));
}

void note_pass(const char* name) noexcept {
  for (std::size_t i = queued_passes.size() - 1; i > 0; --i) queued_passes[i] = queued_passes[i - 1];
  queued_passes[0] = name;
}

}  // namespace gradfuse
