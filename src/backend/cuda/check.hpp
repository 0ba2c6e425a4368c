#pragma once
// Every call of the CUDA runtime is checked.
#include <cuda_runtime_api.h>

#include <string_view>

namespace gradfuse {

/// @throws Error  `status` is not success; says what was done, and which passes were queued before it: an error of a
/// kernel comes to light at a later call.
void check_cuda(cudaError_t status, std::string_view what);

/// Notes a pass for the message above.
void note_pass(const char* name) noexcept;

}  // namespace gradfuse
