#pragma once
// The options of a public optimizer as the element formulas take them.
#include <gradfuse/optimizer.hpp>

#include <type_traits>

#include "kernels/element/scalar.hpp"

namespace gradfuse {

template <class Options>  // AdamOptions or AdamWOptions: they differ in where the weight decay goes
element::AdamHyperParameters hyper_parameters(const Options& options) {
  return {.lr = options.lr,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .is_decoupled = std::is_same_v<Options, AdamWOptions>,
          .amsgrad = options.amsgrad,
          .maximize = options.maximize,
          .bias_correction = options.bias_correction};
}

inline element::SgdHyperParameters hyper_parameters(const SgdOptions& options) {
  return {.lr = options.lr,
          .momentum = options.momentum,
          .dampening = options.dampening,
          .weight_decay = options.weight_decay,
          .nesterov = options.nesterov,
          .maximize = options.maximize};
}

}  // namespace gradfuse
