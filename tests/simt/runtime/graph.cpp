// Capturing what a stream would do into a graph, and doing it again.
#include <utility>

#include "runtime/machine.hpp"

using simt::done;
using simt::find_stream;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  if (stream->is_default || stream->capture != nullptr) return done(cudaErrorStreamCaptureUnsupported);
  stream->capture = new CUgraph_st;
  stream->is_capture_broken = false;
  return done();
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const std::lock_guard lock(simt::machine_mutex());
  *graph = nullptr;
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || stream->capture == nullptr) return done(cudaErrorInvalidValue);
  *graph = std::exchange(stream->capture, nullptr);
  if (!stream->is_capture_broken) return done();
  delete std::exchange(*graph, nullptr);
  return done(cudaErrorStreamCaptureInvalidated);
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  *status = stream->capture == nullptr  ? cudaStreamCaptureStatusNone
            : stream->is_capture_broken ? cudaStreamCaptureStatusInvalidated
                                        : cudaStreamCaptureStatusActive;
  return done();
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  *exec = new CUgraphExec_st{graph->nodes};
  return done();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  if (find_stream(handle) == nullptr) return done(cudaErrorInvalidResourceHandle);
  for (const auto& node : exec->nodes) node(handle);
  return done();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return done();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  delete exec;
  return done();
}

}  // extern "C"
