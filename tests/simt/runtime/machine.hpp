#pragma once
// The state behind the CUDA functions: streams with the work that was queued, events, graphs.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <simt/control.hpp>
#include <string>
#include <vector>

#include "engine/memory.hpp"

struct CUevent_st {
  std::uint64_t recorded = 0, completed = 0;  // generations: how often a record was queued, and the last that ran
  bool is_captured = false;                   // its last record is part of a graph, where only the graph knows it
};

struct CUgraph_st;

namespace simt {

/// A piece of queued work.
struct Op {
  std::uint64_t order = 0;  // of being queued
  std::function<void()> run;
  cudaEvent_t awaited = nullptr;  // not before this event has completed the generation
  std::uint64_t awaited_generation = 0;
};

}  // namespace simt

struct CUstream_st {
  int device = 0;
  bool is_blocking = true;  // in order with the default stream
  bool is_default = false;
  std::deque<simt::Op> queue;
  CUgraph_st* capture = nullptr;  // what is queued goes there
  bool is_capture_broken = false;
};

/// A list of what to queue: one order that respects all that was captured.
struct CUgraph_st {
  std::vector<std::function<void(cudaStream_t)>> nodes;
};
struct CUgraphExec_st {
  std::vector<std::function<void(cudaStream_t)>> nodes;
};

namespace simt {

struct State {
  Machine machine;
  std::mt19937_64 random;
  std::uint64_t next_order = 1;
  std::map<int, std::unique_ptr<CUstream_st>> default_streams;  // by device
  std::map<cudaStream_t, std::unique_ptr<CUstream_st>> streams;
  std::map<cudaEvent_t, std::unique_ptr<CUevent_st>> events;
  std::string fault;                       // of a kernel
  cudaError_t sticky_error = cudaSuccess;  // that every call returns from then on
};
State& state();
std::recursive_mutex& machine_mutex();

/// Sets the last error, and returns it. Errors that stick go before.
cudaError_t done(cudaError_t status = cudaSuccess);
int current_device();

/// The stream of a handle on the current device; null if there is none.
CUstream_st* find_stream(cudaStream_t handle);
/// Queues work, or gives it to the graph that is being captured.
void queue(CUstream_st& stream, std::function<void()> run);
void queue_wait(CUstream_st& stream, cudaEvent_t event);
void queue_record(CUstream_st& stream, cudaEvent_t event);

/// Runs queued work, in an order that streams and events allow, until `is_done`. False: it can never be.
bool run_until(const std::function<bool()>& is_done);
bool run_all();

/// True, with the captures broken, if a call that may not be made in a capture is made in one.
bool is_forbidden_in_capture();

}  // namespace simt
