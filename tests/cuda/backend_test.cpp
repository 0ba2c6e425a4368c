// What the CUDA backend refuses, and how it lives beside others of its kind.
#include "tests/cuda/on_cuda.hpp"

namespace gradfuse::test {
namespace {

class CudaBackendTest : public OnCuda {
 protected:
  /// One window on a set of one tensor.
  void train(OwnedSet& set, const HostTensor& grad) {
    Window window(set.params);
    AdamW optimizer(set.params);
    step_on(window, optimizer, {grad});
  }
};

TEST_F(CudaBackendTest, DescribesItself) {
  const BackendInfo info = describe(*backend);
  EXPECT_EQ(info.name, "cuda");
  EXPECT_THAT(info.target, testing::StartsWith("sm_"));
  EXPECT_FALSE(info.device.empty());
}

TEST_F(CudaBackendTest, RefusesADeviceThatIsNotThere) {
  EXPECT_THAT([] { cuda_backend({.device = 99}); }, throws_saying("no CUDA device 99", "counted from 0"));
  EXPECT_THAT([] { cuda_backend({.device = -1}); }, throws_saying("no CUDA device -1"));
}

TEST_F(CudaBackendTest, RefusesAHostPointerByName) {
  OwnedSet set(backend);
  set.add(HostTensor(DType::kFloat32, 4));
  std::vector<float> host(4);
  const Device cuda{Device::Kind::kCuda, 0};
  EXPECT_THAT(
      [&] {
        set.params.add({.name = "bias", .param = {host.data(), 4, DType::kFloat32, cuda}});
      },
      throws_saying("1 (bias)", "host memory that the device cannot reach"));
  EXPECT_THAT(
      [&] {
        set.params.add({.name = "bias", .param = {host.data(), 4, DType::kFloat32}});
      },
      throws_saying("1 (bias)", "is on cpu, but the backend works on cuda:0"));
  Window window(set.params);
  EXPECT_THAT(
      [&] {
        window.add(std::vector<ConstTensorView>{{host.data(), 4, DType::kFloat32, cuda}});
      },
      throws_saying("gradient of tensor 0 (t0)", "host memory"));
}

TEST_F(CudaBackendTest, TheCpuRefusesMemoryOfTheDevice) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 16), cudaSuccess);
  ParameterSet params(cpu_backend());
  EXPECT_THAT(
      [&] {
        params.add({.name = "w", .param = {data, 4, DType::kFloat32}});
      },
      throws_saying("0 (w)", "is said to be on cpu", "GPU"));
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(CudaBackendTest, RefusesMemoryOfAnotherDevice) {
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  if (num_devices < 2) GTEST_SKIP() << "there is one GPU only";
  void* data = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&data, 16), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  ParameterSet params(backend);
  EXPECT_THAT(
      [&] {
        params.add({.name = "w", .param = {data, 4, DType::kFloat32, {Device::Kind::kCuda, 0}}});
      },
      throws_saying("0 (w)", "that of another device"));
  EXPECT_EQ(cudaFree(data), cudaSuccess);
}

TEST_F(CudaBackendTest, DevicesAndStreamsInOneProcessDoNotDisturbEachOther) {
  int num_devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&num_devices), cudaSuccess);
  Random random(5);
  const HostTensor start = random_tensor(random, DType::kFloat32, 9000);
  const HostTensor grad = random_tensor(random, DType::kFloat16, 9000);
  const auto train_on = [&](std::shared_ptr<const Backend> on, Device device) {
    const OnDevice here(device);
    OwnedSet set(std::move(on));
    set.add(start);
    train(set, copy_of(grad.view()));
    int current = -1;
    EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
    EXPECT_EQ(current, 0) << "the caller's device stays current";
    return set.param[0];
  };
  const HostTensor first = train_on(backend, {Device::Kind::kCuda, 0});
  EXPECT_TRUE(same_bits(train_on(cuda_backend(), {Device::Kind::kCuda, 0}), first));
  EXPECT_TRUE(same_bits(train_on(cpu_backend(), Device::kCpu), first));
  if (num_devices < 2) GTEST_SKIP() << "there is one GPU only";
  const Device second{Device::Kind::kCuda, 1};
  EXPECT_TRUE(same_bits(train_on(cuda_backend({.device = 1}), second), first));
}

TEST_F(CudaBackendTest, NothingWaitsUntilSomebodyAsks) {
  OwnedSet set(backend);
  set.add(HostTensor(DType::kFloat32, 5000));
  const HostTensor grad(DType::kFloat32, 5000);
  Window window(set.params, {.steps = 2});
  AdamW optimizer(set.params);
  LossScaler scaler;
  const std::vector<ConstTensorView> views{grad.view()};
  for (int i = 0; i < 3; ++i) {
    window.add(views);
    window.add(views);
    optimizer.step(window, {.scaler = &scaler});
  }
#if GRADFUSE_TEST_ON_SIMT  // a GPU may be done by now
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
#endif
  EXPECT_EQ(optimizer.last_report().window, 2u);
  EXPECT_EQ(optimizer.step_count(0), 3);
  EXPECT_EQ(scaler.state().growth_tracker, 3);
  synchronize(*backend);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
}

}  // namespace
}  // namespace gradfuse::test
