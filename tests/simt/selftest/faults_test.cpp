// The emulated device finds what kernels and their host code can do wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <simt/control.hpp>

#include <array>
#include <string>
#include <vector>

#include "kernels/cuda/launch.hpp"

namespace {

using gradfuse::cuda::launch;
using gradfuse::cuda::load;
using gradfuse::cuda::store;
using testing::HasSubstr;

constexpr unsigned kWholeWarp = 0xffffffffu;

class Simt : public testing::Test {
 protected:
  void SetUp() override { simt::start_machine(); }
  void TearDown() override { simt::start_machine(); }

  template <class T = float>
  T* device_array(std::size_t size) {
    void* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, size * sizeof(T)), cudaSuccess);
    return static_cast<T*>(data);
  }
  float* zeros(std::size_t size) {
    float* data = device_array(size);
    EXPECT_EQ(cudaMemset(data, 0, size * sizeof(float)), cudaSuccess);
    return data;
  }
  template <class... Params, class... Args>
  cudaError_t run(unsigned blocks, unsigned threads, void (*kernel)(Params...), Args... args) {
    const cudaError_t status = launch({"kernel", blocks, threads, nullptr}, kernel, args...);
    return status == cudaSuccess ? cudaDeviceSynchronize() : status;
  }
  template <class... Params, class... Args>
  void expect_fault(const char* message, unsigned blocks, unsigned threads, void (*kernel)(Params...), Args... args) {
    testing::internal::CaptureStderr();
    const cudaError_t status = run(blocks, threads, kernel, args...);
    testing::internal::GetCapturedStderr();
    EXPECT_NE(status, cudaSuccess);
    EXPECT_THAT(simt::last_fault(), HasSubstr(message));
    EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess) << "an error of a kernel sticks";
    EXPECT_NE(cudaGetLastError(), cudaSuccess);
    EXPECT_NE(cudaGetLastError(), cudaSuccess);
  }
};

__global__ void write_each(float* out, unsigned size) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < size) store(out + i, static_cast<float>(i));
}
__global__ void read_each(const float* in, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  store(out + i, load(in + i));
}
__global__ void read_vectors(const float* in, float* out) {
  const float4 four = load(reinterpret_cast<const float4*>(in) + threadIdx.x);
  store(out + threadIdx.x, four.x + four.y + four.z + four.w);
}

TEST_F(Simt, ACleanKernelRuns) {
  float* data = device_array(100);
  EXPECT_EQ(run(2, 64, write_each, data, 100u), cudaSuccess);
  std::array<float, 100> host{};
  EXPECT_EQ(cudaMemcpy(host.data(), data, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
  for (std::size_t i = 0; i < host.size(); ++i) EXPECT_EQ(host[i], static_cast<float>(i));
}

TEST_F(Simt, FindsAWritePastTheEnd) { expect_fault("accesses byte 400", 2, 64, write_each, device_array(100), 101u); }
TEST_F(Simt, FindsAReadPastTheEnd) { expect_fault("accesses", 4, 32, read_each, zeros(64), zeros(128)); }
TEST_F(Simt, FindsAMisalignedVector) {
  expect_fault("4 bytes off its boundary", 1, 32, read_vectors, zeros(200) + 1, zeros(32));
}
TEST_F(Simt, FindsFreshDeviceMemoryThatIsRead) {
  expect_fault("of fresh memory, which nobody has written", 1, 32, read_each, device_array(32), zeros(32));
}
TEST_F(Simt, FindsAHostPointer) {
  const std::vector<float> host(32);
  expect_fault("accesses what is no memory of a device", 1, 32, read_each, host.data(), zeros(32));
}
TEST_F(Simt, FindsMemoryOfAnotherDevice) {
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  float* other = zeros(32);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  expect_fault("accesses memory of device 1", 1, 32, read_each, other, zeros(32));
}
TEST_F(Simt, FindsMemoryThatWasFreed) {
  float* freed = zeros(32);
  EXPECT_EQ(cudaFree(freed), cudaSuccess);
  expect_fault("accesses what is no memory of a device", 1, 32, read_each, freed, zeros(32));
}
TEST_F(Simt, TellsOfMemoryThatWasNotFreed) {
  float* data = zeros(32);
  EXPECT_EQ(simt::live_allocations(), 1u);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(simt::live_allocations(), 0u);
}

__global__ void read_unwritten_shared(float* out) {
  GF_SHARED(value, float);
  if (threadIdx.x == 1) value.set(1.0f);
  __syncthreads();
  GF_SHARED(other, float);
  store(out + threadIdx.x, other.get());
}
TEST_F(Simt, FindsSharedMemoryThatNobodyHasWritten) {
  expect_fault("reads shared memory that nobody has written", 1, 32, read_unwritten_shared, zeros(32));
}

template <bool kHasBarrier>
__global__ void broadcast(float* out) {
  GF_SHARED(value, float);
  if (threadIdx.x == 0) value.set(3.0f);
  if (kHasBarrier) __syncthreads();
  store(out + threadIdx.x, value.get());
}
TEST_F(Simt, FindsAMissingBarrier) {
  EXPECT_EQ(run(1, 64, broadcast<true>, zeros(64)), cudaSuccess);
  // The order of the threads decides which of two faults it is: a read before the write, or one that nothing orders.
  expect_fault("shared memory that", 1, 64, broadcast<false>, zeros(64));
}

__global__ void count_in_shared(float* out) {
  GF_SHARED(sum, float);
  if (threadIdx.x == 0) sum.set(0.0f);
  __syncthreads();
  sum.set(sum.get() + 1.0f);
  __syncthreads();
  store(out + threadIdx.x, sum.get());
}
TEST_F(Simt, FindsARaceInSharedMemory) { expect_fault("shared memory that thread", 1, 64, count_in_shared, zeros(64)); }

__global__ void write_the_same(float* out) { store(out, 1.0f); }
TEST_F(Simt, FindsARaceInGlobalMemory) {
  expect_fault("writes global memory that thread", 2, 32, write_the_same, zeros(1));
}
__global__ void count_by_atomics(unsigned* out) { atomicAdd(out, 1u); }
TEST_F(Simt, AtomicsAreNoRace) {
  auto* count = reinterpret_cast<unsigned*>(zeros(1));
  EXPECT_EQ(run(4, 64, count_by_atomics, count), cudaSuccess);
  unsigned host = 0;
  EXPECT_EQ(cudaMemcpy(&host, count, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(host, 256u);
}

__global__ void barriers_in_both_branches() {
  if (threadIdx.x < 32) {  // NOLINT(bugprone-branch-clone): that is the fault
    __syncthreads();
  } else {
    __syncthreads();
  }
}
TEST_F(Simt, FindsADivergentBarrier) { expect_fault("is at the barrier at", 1, 64, barriers_in_both_branches); }
__global__ void barrier_for_some() {
  if (threadIdx.x < 32) __syncthreads();
}
TEST_F(Simt, FindsABarrierThatNotAllReach) { expect_fault("has returned", 1, 64, barrier_for_some); }
__global__ void shuffle_for_some(float* out) {
  if (threadIdx.x % 2 == 0) store(out + threadIdx.x, __shfl_xor_sync(kWholeWarp, 1.0f, 1));
}
TEST_F(Simt, FindsAShuffleThatNotAllReach) { expect_fault("has returned", 1, 32, shuffle_for_some, zeros(32)); }
__global__ void different_collectives() {
  if (threadIdx.x < 16) {
    (void)__shfl_xor_sync(kWholeWarp, 1.0f, 1);
  } else {
    (void)__any_sync(kWholeWarp, 1);
  }
}
TEST_F(Simt, FindsDifferentCollectives) { expect_fault("do different things together", 1, 32, different_collectives); }
__global__ void shuffle_and_barrier() {
  if (threadIdx.x < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}
TEST_F(Simt, FindsADeadlock) { expect_fault("wait for each other", 1, 32, shuffle_and_barrier); }

__global__ void sum_by_shuffles(const float* in, float* out) {
  float value = load(in + threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kWholeWarp, value, distance);
  GF_SHARED(sum, float);
  if (threadIdx.x == 0) sum.set(value);
  __syncthreads();
  store(out + threadIdx.x, sum.get());
  if (__all_sync(kWholeWarp, threadIdx.x < 64) != 0 && __ballot_sync(kWholeWarp, threadIdx.x % 2 == 0) == 0x55555555u) {
    __syncthreads();
  }
}
TEST_F(Simt, EveryOrderOfThreadsGivesTheSameCleanRun) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    simt::start_machine({.seed = seed});
    std::array<float, 64> host{};
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
    float *in = device_array(64), *out = device_array(64);
    EXPECT_EQ(cudaMemcpy(in, host.data(), sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
    ASSERT_EQ(run(1, 64, sum_by_shuffles, in, out), cudaSuccess) << simt::last_fault();
    EXPECT_EQ(cudaMemcpy(host.data(), out, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    for (const float value : host) ASSERT_EQ(value, 31.0f * 16.0f);
  }
}

__global__ void reverse_in_dynamic_shared(const float* in, float* out, unsigned reach) {
  GF_DYNAMIC_SHARED(values, float);
  values.set(threadIdx.x, load(in + threadIdx.x));
  __syncthreads();
  store(out + threadIdx.x, values.get((blockDim.x - 1 - threadIdx.x) * reach));
}

TEST_F(Simt, DynamicSharedMemoryIsAsLargeAsTheLaunchSays) {
  float *in = zeros(64), *out = zeros(64);
  ASSERT_EQ(launch({"kernel", 1, 64, nullptr, 64 * sizeof(float)}, reverse_in_dynamic_shared, in, out, 1u),
            cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(launch({"kernel", 1, 64, nullptr, 1u << 20}, reverse_in_dynamic_shared, in, out, 1u),
            cudaErrorInvalidValue);
  (void)cudaGetLastError();
  testing::internal::CaptureStderr();
  ASSERT_EQ(launch({"kernel", 1, 64, nullptr, 64 * sizeof(float)}, reverse_in_dynamic_shared, in, out, 2u),
            cudaSuccess);
  EXPECT_NE(cudaDeviceSynchronize(), cudaSuccess);
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(simt::last_fault(), HasSubstr("no shared memory of its block"));
}

__global__ void write_past_a_shared_array(float* out) {
  GF_SHARED_ARRAY(values, float, 32);
  values.set(threadIdx.x + 1, 1.0f);
  __syncthreads();
  store(out + threadIdx.x, values.get(threadIdx.x));
}

TEST_F(Simt, AnIndexPastASharedArrayIsFound) {
  expect_fault("no shared memory of its block", 1, 32, write_past_a_shared_array, zeros(32));
}

}  // namespace
