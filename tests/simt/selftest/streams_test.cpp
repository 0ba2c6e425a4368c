// The emulated runtime runs streams in every order that their dependencies allow, so that a missing one shows.
#include <gtest/gtest.h>
#include <simt/control.hpp>

#include <set>

#include "kernels/cuda/launch.hpp"

namespace {

using gradfuse::cuda::launch;
using gradfuse::cuda::load;
using gradfuse::cuda::store;

__global__ void set_value(float* at, float value) {
  if (threadIdx.x == 0) store(at, value);
}
__global__ void add_to(float* at, const float* other) {
  if (threadIdx.x == 0) store(at, load(at) + load(other));
}

class SimtStreams : public testing::Test {
 protected:
  void start(std::uint64_t seed) {
    simt::start_machine({.seed = seed});
    for (cudaStream_t& stream : streams) {
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    }
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    void* data = nullptr;
    ASSERT_EQ(cudaMalloc(&data, sizeof(float)), cudaSuccess);
    value = static_cast<float*>(data);
    ASSERT_EQ(cudaMemset(value, 0, sizeof(float)), cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the streams below are not in order with the default one
  }
  void TearDown() override { simt::start_machine(); }
  void queue_set(cudaStream_t stream, float to) {
    ASSERT_EQ(launch({"set_value", 1, 32, stream}, set_value, value, to), cudaSuccess);
  }
  float result() {
    float host = 0.0f;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost), cudaSuccess);
    return host;
  }

  cudaStream_t streams[2] = {};
  cudaEvent_t event = nullptr;
  float* value = nullptr;
};

TEST_F(SimtStreams, AMissingDependencyShows) {
  std::set<float> without, with;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    start(seed);
    queue_set(streams[0], 1.0f);
    queue_set(streams[1], 2.0f);
    without.insert(result());

    start(seed);
    queue_set(streams[0], 1.0f);
    EXPECT_EQ(cudaEventRecord(event, streams[0]), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(streams[1], event, 0), cudaSuccess);
    queue_set(streams[1], 2.0f);
    with.insert(result());
  }
  EXPECT_EQ(without, (std::set{1.0f, 2.0f}));
  EXPECT_EQ(with, std::set{2.0f});
}

TEST_F(SimtStreams, NothingRunsBeforeSomebodyWaits) {
  start(1);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(float)), cudaSuccess);
  auto* host = static_cast<float*>(pinned);
  *host = 5.0f;
  queue_set(streams[0], 7.0f);
  EXPECT_EQ(cudaMemcpyAsync(host, value, sizeof(float), cudaMemcpyDeviceToHost, streams[0]), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(streams[0]), cudaErrorNotReady);
  EXPECT_EQ(*host, 5.0f);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_EQ(*host, 7.0f);
}

TEST_F(SimtStreams, APinnedBufferThatIsOverwrittenTooEarlyShows) {
  start(1);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(float)), cudaSuccess);
  auto* host = static_cast<float*>(pinned);
  *host = 1.0f;
  EXPECT_EQ(cudaMemcpyAsync(value, host, sizeof(float), cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  *host = 2.0f;
  EXPECT_EQ(result(), 2.0f);
  // Pageable memory is read at once.
  float pageable = 3.0f;
  EXPECT_EQ(cudaMemcpyAsync(value, &pageable, sizeof(float), cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  pageable = 4.0f;
  EXPECT_EQ(result(), 3.0f);
}

TEST_F(SimtStreams, TheDefaultStreamIsInOrderWithBlockingStreamsAlone) {
  std::set<float> blocking, non_blocking;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    start(seed);
    cudaStream_t stream = nullptr;
    ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
    queue_set(stream, 1.0f);
    queue_set(nullptr, 2.0f);
    blocking.insert(result());
    start(seed);
    queue_set(streams[0], 1.0f);
    queue_set(nullptr, 2.0f);
    non_blocking.insert(result());
  }
  EXPECT_EQ(blocking, std::set{2.0f});
  EXPECT_EQ(non_blocking, (std::set{1.0f, 2.0f}));
}

TEST_F(SimtStreams, ADestroyedStreamIsRefused) {
  start(1);
  EXPECT_EQ(cudaStreamDestroy(streams[0]), cudaSuccess);
  EXPECT_EQ(launch({"set_value", 1, 32, streams[0]}, set_value, value, 1.0f), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess) << "this error does not stick";
}

TEST_F(SimtStreams, MemoryThatIsFreedInOrderIsUsedUntilThen) {
  start(1);
  void* other = nullptr;
  ASSERT_EQ(cudaMallocAsync(&other, sizeof(float), streams[0]), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(other, 0, sizeof(float), streams[0]), cudaSuccess);
  EXPECT_EQ(launch({"add_to", 1, 32, streams[0]}, add_to, value, static_cast<const float*>(other)), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(other, streams[0]), cudaSuccess);
  EXPECT_EQ(result(), 0.0f);
}

TEST_F(SimtStreams, MemoryRunsOutWhereTheDeviceEnds) {
  simt::start_machine({.bytes_per_device = 1000});
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 600), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&data, 600), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&data, 400), cudaSuccess);
}

TEST_F(SimtStreams, AGraphDoesAgainWhatWasCaptured) {
  start(1);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, sizeof(float)), cudaSuccess);
  auto* host = static_cast<float*>(pinned);
  void* other = nullptr;
  ASSERT_EQ(cudaMalloc(&other, sizeof(float)), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(other, host, sizeof(float), cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  EXPECT_EQ(launch({"add_to", 1, 32, streams[0]}, add_to, value, static_cast<const float*>(other)), cudaSuccess);
  EXPECT_EQ(cudaEventRecordWithFlags(event, streams[0], cudaEventRecordExternal), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaSuccess);
  cudaGraphExec_t exec = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
  EXPECT_EQ(result(), 0.0f) << "a capture runs nothing";
  for (const float add : {1.0f, 10.0f}) {
    *host = add;  // a replay reads what is there then
    EXPECT_EQ(cudaGraphLaunch(exec, streams[0]), cudaSuccess);
    EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  }
  EXPECT_EQ(result(), 11.0f);
  EXPECT_EQ(cudaGraphExecDestroy(exec), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(SimtStreams, ACallThatWaitsBreaksACapture) {
  start(1);
  ASSERT_EQ(cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal), cudaSuccess);
  void* data = nullptr;
  EXPECT_EQ(cudaMalloc(&data, 8), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaErrorStreamCaptureUnsupported);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(streams[0], &graph), cudaErrorStreamCaptureInvalidated);
}

}  // namespace
