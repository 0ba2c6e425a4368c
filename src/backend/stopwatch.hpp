#pragma once
// How long a backend's device takes.
#include <chrono>

namespace gradfuse {

class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start() = 0;
  /// Seconds that the device took for what was queued since `start`; waits for it.
  virtual double stop() = 0;
};

class HostStopwatch final : public Stopwatch {
 public:
  void start() override { start_ = Clock::now(); }
  double stop() override { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_;
};

}  // namespace gradfuse
