#pragma once
// The options of every group: the defaults until changed.
#include <fmt/format.h>

#include <deque>
#include <gradfuse/error.hpp>
#include <gradfuse/parameter_set.hpp>
#include <vector>

#include "src/backend/device_array.hpp"
#include "src/core/check_hyper.hpp"
#include "src/core/hyper_parameters.hpp"

namespace gradfuse {

template <class Options>
class Groups {
 public:
  using HyperParameters = decltype(hyper_parameters(Options{}));

  explicit Groups(const Options& defaults) : defaults_(defaults) { check_hyper(0, hyper_parameters(defaults)); }

  void grow(const ParameterSet& params) {
    while (options_.size() < params.num_groups()) options_.push_back(defaults_);
  }
  const Options& operator[](std::size_t group) const { return options_[group]; }
  Options& at(const ParameterSet& params, std::size_t group) {
    grow(params);
    if (group < options_.size()) return options_[group];
    throw Error(fmt::format("there is no group {}: the set has {} groups", group, options_.size()));
  }

  void check() const {
    for (std::size_t group = 0; group < options_.size(); ++group) check_hyper(group, hyper_parameters(options_[group]));
  }
  /// The options as they are now, where the passes read them; uploaded only if they have changed.
  const HyperParameters* publish(const DeviceMemory& memory) {
    now_.clear();
    for (const Options& options : options_) now_.push_back(hyper_parameters(options));
    if (now_ != published_) {
      on_device_.grow(memory, now_.size());
      memory.upload(on_device_.data(), now_.data(), now_.size() * sizeof(HyperParameters));
      published_ = now_;
    }
    return on_device_.data();
  }

 private:
  Options defaults_;
  std::deque<Options> options_;  // references given out stay good when groups join
  std::vector<HyperParameters> now_, published_;
  DeviceArray<HyperParameters> on_device_;
};

}  // namespace gradfuse
