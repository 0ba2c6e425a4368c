// Streams, events, launches.
#include <simt/device_code.hpp>
#include <simt/fault.hpp>

#include "engine/grid.hpp"
#include "runtime/machine.hpp"

using simt::done;
using simt::find_stream;
using simt::state;

namespace simt {

cudaError_t queue_launch(const char* name, unsigned num_blocks, unsigned threads_per_block,
                         unsigned dynamic_shared_bytes, cudaStream_t handle, std::function<void()> kernel) {
  const std::lock_guard lock(machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  if (num_blocks == 0 || threads_per_block == 0 || threads_per_block > 1024) return done(cudaErrorInvalidConfiguration);
  constexpr unsigned kMaxSharedBytes = 48 << 10;  // without asking for more
  if (dynamic_shared_bytes > kMaxSharedBytes) return done(cudaErrorInvalidValue);
  const GridShape shape{name, num_blocks, threads_per_block, stream->device, dynamic_shared_bytes};
  queue(*stream, [shape, kernel = std::move(kernel)] { run_grid(shape, kernel, state().random()); });
  return done();
}

}  // namespace simt

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  const std::lock_guard lock(simt::machine_mutex());
  auto stream = std::make_unique<CUstream_st>();
  stream->device = simt::current_device();
  stream->is_blocking = (flags & cudaStreamNonBlocking) == 0;
  *handle = stream.get();
  state().streams.emplace(*handle, std::move(stream));
  return done();
}
cudaError_t cudaStreamCreate(cudaStream_t* handle) { return cudaStreamCreateWithFlags(handle, cudaStreamDefault); }
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || stream->is_default) return done(cudaErrorInvalidResourceHandle);
  simt::run_until([stream] { return stream->queue.empty(); });  // its work is finished all the same
  state().streams.erase(handle);
  return done();
}
cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  if (simt::is_forbidden_in_capture()) return done(cudaErrorStreamCaptureUnsupported);
  const bool is_done = simt::run_until([stream] { return stream->queue.empty(); });
  return done(is_done ? cudaSuccess : cudaErrorLaunchTimeout);
}
cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr) return done(cudaErrorInvalidResourceHandle);
  if (simt::is_forbidden_in_capture()) return done(cudaErrorStreamCaptureUnsupported);
  return stream->queue.empty() ? done() : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || !state().events.contains(event)) return done(cudaErrorInvalidResourceHandle);
  simt::queue_wait(*stream, event);
  return done();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned) {
  const std::lock_guard lock(simt::machine_mutex());
  auto event = std::make_unique<CUevent_st>();
  *handle = event.get();
  state().events.emplace(*handle, std::move(event));
  return done();
}
cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(simt::machine_mutex());
  return done(state().events.erase(event) == 1 ? cudaSuccess : cudaErrorInvalidResourceHandle);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t handle, unsigned flags) {
  const std::lock_guard lock(simt::machine_mutex());
  CUstream_st* stream = find_stream(handle);
  if (stream == nullptr || !state().events.contains(event)) return done(cudaErrorInvalidResourceHandle);
  if (stream->capture == nullptr) {
    simt::queue_record(*stream, event);
  } else if (flags == cudaEventRecordExternal) {
    stream->capture->nodes.push_back([event](cudaStream_t at) { simt::queue_record(*find_stream(at), event); });
  } else {
    event->is_captured = true;
  }
  return done();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  return cudaEventRecordWithFlags(event, handle, cudaEventRecordDefault);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(simt::machine_mutex());
  if (!state().events.contains(event)) return done(cudaErrorInvalidResourceHandle);
  if (event->is_captured) return done(cudaErrorCapturedEvent);
  const std::uint64_t generation = event->recorded;
  const bool is_done =
      simt::run_until([=] { return event->completed >= generation || state().sticky_error != cudaSuccess; });
  return done(is_done ? cudaSuccess : cudaErrorLaunchTimeout);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(simt::machine_mutex());
  if (!state().events.contains(event)) return done(cudaErrorInvalidResourceHandle);
  if (event->is_captured) return done(cudaErrorCapturedEvent);
  return event->completed >= event->recorded ? done() : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>(end->completed - begin->completed);  // nothing is timed here
  return done();
}

}  // extern "C"
