// The CUDA backend on machines that a GPU cannot be turned into: without one, with an old driver, with little memory,
// with a stream that is gone, with a kernel that fails.
#include <simt/control.hpp>

#include "tests/cuda/on_cuda.hpp"

namespace gradfuse::test {
namespace {

class MachineOnSimt : public testing::Test {
 protected:
  void SetUp() override { simt::start_machine(); }
  void TearDown() override { simt::start_machine(); }
};

TEST_F(MachineOnSimt, SaysWhyThereIsNoCuda) {
  EXPECT_EQ(why_no_cuda(), "");
  simt::start_machine({.num_devices = 0});
  EXPECT_EQ(why_no_cuda(), "there is no NVIDIA GPU");
  EXPECT_THAT([] { cuda_backend(); }, throws_saying("no CUDA", "no NVIDIA GPU"));
  simt::start_machine({.driver_version = 0});
  EXPECT_EQ(why_no_cuda(), "there is no NVIDIA driver on this machine");
  simt::start_machine({.driver_version = 11080});
  EXPECT_THAT(why_no_cuda(), testing::HasSubstr("the driver is for CUDA 11.8"));
}

TEST_F(MachineOnSimt, OutOfMemorySaysHowMuchWasAskedAndIsFreeAndChangesNothing) {
  simt::start_machine({.bytes_per_device = 200'000});
  const OnDevice on_device({Device::Kind::kCuda, 0});
  OwnedSet set(cuda_backend());
  Random random(1);
  set.add(random_tensor(random, DType::kFloat32, 10'000));
  const HostTensor before = copy_of(set.param[0].view()), grad = random_tensor(random, DType::kFloat16, 10'000);
  Window window(set.params);
  AdamW optimizer(set.params);
  window.add(std::vector<ConstTensorView>{grad.view()});
  EXPECT_THAT([&] { optimizer.step(window); },
              throws_saying("out of device memory", "asked for 40193 bytes, free are", "of 200000"));
  EXPECT_TRUE(same_bits(set.param[0], before));
  EXPECT_EQ(window.micro_batches(), 1u) << "the window can still be stepped";
}

TEST_F(MachineOnSimt, ADestroyedStreamIsAnError) {
  const OnDevice on_device({Device::Kind::kCuda, 0});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  OwnedSet set(cuda_backend({.stream = stream}));
  set.add(HostTensor(DType::kFloat32, 10));
  Window window(set.params, {.steps = 2});
  const HostTensor grad(DType::kFloat32, 10);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_THAT([&] { window.add(std::vector<ConstTensorView>{grad.view()}); },
              throws_saying("CUDA", "cudaErrorInvalidResourceHandle"));
}

TEST_F(MachineOnSimt, AFailedKernelIsReportedWithThePassesBeforeIt) {
  const OnDevice on_device({Device::Kind::kCuda, 0});
  OwnedSet set(cuda_backend());
  set.add(HostTensor(DType::kFloat32, 10));
  Window window(set.params);
  AdamW optimizer(set.params);
  {
    const HostTensor grad(DType::kFloat32, 10);
    window.add(std::vector<ConstTensorView>{grad.view()});
  }  // the pending gradient is gone before the step reads it
  testing::internal::CaptureStderr();
  optimizer.step(window);
  EXPECT_THAT([&] { (void)optimizer.last_report(); }, throws_saying("CUDA", "cudaErrorIllegalAddress", "adam, stats"));
  testing::internal::GetCapturedStderr();
}

TEST_F(MachineOnSimt, NothingOfTheDeviceIsLeftBehind) {
  const OnDevice on_device({Device::Kind::kCuda, 0});
  {
    OwnedSet set(cuda_backend());
    set.add(HostTensor(DType::kFloat32, 5000), DType::kBFloat16);
    Window window(set.params);
    Adam optimizer(set.params, {.amsgrad = true});
    LossScaler scaler;
    for (int i = 0; i < 3; ++i) step_on(window, optimizer, set.zero_grads(), {.max_grad_norm = 1.0, .scaler = &scaler});
  }
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(simt::live_allocations(), 0u);
}

}  // namespace
}  // namespace gradfuse::test
