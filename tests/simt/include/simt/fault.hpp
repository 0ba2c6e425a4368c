#pragma once
// What a kernel can do wrong.
#include <stdexcept>
#include <string>

namespace simt {

enum class FaultKind {
  kOutOfBounds,    // no allocation there, or past its end; also host memory
  kMisaligned,     // a vector access off its boundary
  kUninitialized,  // fresh device or shared memory was read
  kWrongDevice,    // memory of another device
  kDivergence,     // threads wait for each other at different places, or for one that has returned
  kRace,           // accesses that nothing orders
  kBadLaunch,      // more threads or blocks than there can be
};

struct Fault : std::runtime_error {
  Fault(FaultKind kind_, const std::string& message) : std::runtime_error(message), kind(kind_) {}
  FaultKind kind;
};

}  // namespace simt
