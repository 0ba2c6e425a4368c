#pragma once
// The options of every group: the defaults until changed.
#include <fmt/format.h>

#include <deque>
#include <gradfuse/error.hpp>
#include <gradfuse/parameter_set.hpp>
#include <vector>

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
  /// The options as they are now, for the passes; good until the next call.
  std::span<const HyperParameters> refresh() {
    hyper_.clear();
    for (const Options& options : options_) hyper_.push_back(hyper_parameters(options));
    return hyper_;
  }

 private:
  Options defaults_;
  std::deque<Options> options_;  // references given out stay good when groups join
  std::vector<HyperParameters> hyper_;
};

}  // namespace gradfuse
