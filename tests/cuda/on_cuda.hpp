#pragma once
// For tests of what only the CUDA backend does; they run on the emulated device and on a GPU.
#include <cuda_runtime_api.h>

#include "tests/core/training.hpp"

namespace gradfuse::test {

class OnCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = why_no_cuda(); !reason.empty()) GTEST_SKIP() << reason;
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    backend = cuda_backend({.device = 0, .stream = stream});
  }
  void TearDown() override {
    backend.reset();
    if (stream != nullptr) (void)cudaStreamDestroy(stream);
    (void)cudaGetLastError();
  }

  OnDevice on_device{{Device::Kind::kCuda, 0}};
  cudaStream_t stream = nullptr;
  std::shared_ptr<const Backend> backend;
};

}  // namespace gradfuse::test
