#pragma once
// The memory of a backend's device, and moving small things between it and the host. Everything is in order with the
// passes of the same backend.
#include <gradfuse/backend.hpp>

#include <cstddef>
#include <memory>

#include "src/backend/buffer.hpp"

namespace gradfuse {

/// A few bytes of device memory that the host will want to see.
class Readback {
 public:
  virtual ~Readback() = default;
  /// Asks for the bytes as they are once the work queued so far is done; does not wait.
  virtual void request(const void* from) = 0;
  /// The bytes last asked for, in host memory, good until the next request. Waits for them if need be.
  virtual const void* wait() = 0;
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// Zero-filled. @throws Error  there is not so much.
  virtual Buffer allocate(std::size_t num_bytes) const = 0;
  virtual std::unique_ptr<Readback> make_readback(std::size_t num_bytes) const = 0;

  virtual void clear(void* to, std::size_t num_bytes) const = 0;
  /// Within the device.
  virtual void copy(void* to, const void* from, std::size_t num_bytes) const = 0;
  /// From the host; `from` may be changed at once.
  virtual void upload(void* to, const void* from, std::size_t num_bytes) const = 0;
  /// To the host; waits.
  virtual void download(void* to, const void* from, std::size_t num_bytes) const = 0;
  /// Until all that was queued is done.
  virtual void wait() const = 0;
  /// Of the pool that it is allocated from.
  virtual DevicePool pool() const { return {}; }
  /// Why the device cannot work on what `data` points to; empty if it can, as far as is known.
  virtual const char* why_unreachable(const void* data) const = 0;
};

/// The memory of this process.
const DeviceMemory& host_memory();
/// How `host_memory` knows that a pointer is not to memory of the host; a backend of a device sets it.
void set_check_of_host_pointers(const char* (*why_unreachable)(const void* data)) noexcept;

}  // namespace gradfuse
