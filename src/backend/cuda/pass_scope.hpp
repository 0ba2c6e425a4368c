#pragma once
// What surrounds the launch of every pass.
#include <nvtx3/nvtx3.hpp>

#include "src/backend/cuda/handles.hpp"

namespace gradfuse {

// As profilers show it.
struct NvtxDomain {
  static constexpr const char* name = "gradfuse";
};

/// One pass: its device made current, its name told to profilers and noted for error messages.
class PassScope {
 public:
  PassScope(const char* name, int device) : guard_(device), range_(name) { note_pass(name); }

 private:
  DeviceGuard guard_;
  nvtx3::scoped_range_in<NvtxDomain> range_;
};

}  // namespace gradfuse
