#include "runtime/machine.hpp"

#include <simt/fault.hpp>

namespace simt {
namespace {
thread_local int device_of_thread = 0;
thread_local cudaError_t last_error = cudaSuccess;

std::vector<CUstream_st*> all_streams() {
  std::vector<CUstream_st*> all;
  for (const auto& [device, stream] : state().default_streams) all.push_back(stream.get());
  for (const auto& [handle, stream] : state().streams) all.push_back(stream.get());
  return all;
}

/// The default stream of a device and its blocking streams wait for each other, in the order of the calls.
bool is_held_back(const CUstream_st& stream) {
  if (!stream.is_blocking) return false;
  const std::uint64_t order = stream.queue.front().order;
  for (const CUstream_st* other : all_streams()) {
    const bool are_in_order = other != &stream && other->is_blocking && other->device == stream.device &&
                              (other->is_default || stream.is_default);
    if (are_in_order && !other->queue.empty() && other->queue.front().order < order) return true;
  }
  return false;
}

bool can_run(const CUstream_st& stream) {
  if (stream.queue.empty()) return false;
  const Op& op = stream.queue.front();
  const bool waits =
      op.awaited != nullptr && state().events.contains(op.awaited) && op.awaited->completed < op.awaited_generation;
  return !waits && !is_held_back(stream);
}

void run_front(CUstream_st& stream) {
  const Op op = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (state().sticky_error != cudaSuccess) return;  // nothing runs any more, but nobody waits either
  try {
    if (op.run) op.run();
  } catch (const Fault& fault) {
    state().fault = fault.what();
    state().sticky_error = fault.kind == FaultKind::kMisaligned ? cudaErrorMisalignedAddress : cudaErrorIllegalAddress;
    if (fault.kind == FaultKind::kDivergence || fault.kind == FaultKind::kRace) {
      state().sticky_error = cudaErrorLaunchFailure;
    }
    std::fprintf(stderr, "simt: %s\n", fault.what());
  }
}

}  // namespace

State& state() {
  static State the_state;
  return the_state;
}
std::recursive_mutex& machine_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

void start_machine(const Machine& machine) {
  const std::lock_guard lock(machine_mutex());
  State& now = state();
  now.streams.clear();
  now.events.clear();
  now.default_streams.clear();
  release_all();
  now.fault.clear();
  now.sticky_error = cudaSuccess;
  now.machine = machine;
  now.random.seed(machine.seed);
  device_of_thread = 0;
  last_error = cudaSuccess;
}
std::size_t live_allocations() { return num_allocations(); }
std::string last_fault() { return state().fault; }

cudaError_t done(cudaError_t status) {
  if (state().sticky_error != cudaSuccess) status = state().sticky_error;
  if (status != cudaSuccess) last_error = status;
  return status;
}

int current_device() { return device_of_thread; }

CUstream_st* find_stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    std::unique_ptr<CUstream_st>& stream = state().default_streams[device_of_thread];
    if (stream == nullptr) {
      stream = std::make_unique<CUstream_st>();
      stream->device = device_of_thread;
      stream->is_default = true;
    }
    return stream.get();
  }
  const auto found = state().streams.find(handle);
  return found == state().streams.end() ? nullptr : found->second.get();
}

void queue(CUstream_st& stream, std::function<void()> run) {
  if (stream.capture != nullptr) {
    stream.capture->nodes.push_back([run = std::move(run)](cudaStream_t at) { queue(*find_stream(at), run); });
    return;
  }
  stream.queue.push_back({state().next_order++, std::move(run)});
}

void queue_wait(CUstream_st& stream, cudaEvent_t event) {
  stream.queue.push_back({state().next_order++, {}, event, event->recorded});
}

void queue_record(CUstream_st& stream, cudaEvent_t event) {
  const std::uint64_t generation = ++event->recorded;
  event->is_captured = false;
  stream.queue.push_back({state().next_order++, [event, generation] {
                            if (state().events.contains(event)) event->completed = generation;
                          }});
}

bool run_until(const std::function<bool()>& is_done) {
  while (!is_done()) {
    std::vector<CUstream_st*> able;
    for (CUstream_st* stream : all_streams()) {
      if (can_run(*stream)) able.push_back(stream);
    }
    if (able.empty()) return false;
    run_front(*able[state().random() % able.size()]);
  }
  return true;
}
bool run_all() {
  return run_until([] {
    for (const CUstream_st* stream : all_streams()) {
      if (!stream->queue.empty()) return false;
    }
    return true;
  });
}

bool is_forbidden_in_capture() {
  bool is_capturing = false;
  for (CUstream_st* stream : all_streams()) {
    if (stream->capture == nullptr) continue;
    is_capturing = true;
    stream->is_capture_broken = true;
  }
  return is_capturing;
}

}  // namespace simt

extern "C" {
cudaError_t cudaGetLastError() {
  const cudaError_t error = simt::state().sticky_error != cudaSuccess ? simt::state().sticky_error : simt::last_error;
  simt::last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() {
  return simt::state().sticky_error != cudaSuccess ? simt::state().sticky_error : simt::last_error;
}
cudaError_t cudaGetDevice(int* device) {
  *device = simt::device_of_thread;
  return simt::done();
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= simt::state().machine.num_devices) return simt::done(cudaErrorInvalidDevice);
  simt::device_of_thread = device;
  return simt::done();
}
}
