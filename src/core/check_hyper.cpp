#include "src/core/check_hyper.hpp"

#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <limits>

namespace gradfuse {
namespace {
constexpr double kLowest = std::numeric_limits<double>::lowest();
}

void check_hyper(std::size_t group, std::string_view name, double value, double low) {
  if (element::fits_float(value) && value >= low) return;
  throw Error(low == kLowest ? fmt::format("group {}: {} is {}; it must be finite in float32", group, name, value)
                             : fmt::format("group {}: {} is {}; it must be at least {} and finite in float32", group,
                                           name, value, low));
}
void check_hyper(std::size_t group, std::string_view name, double value, double low, double high) {
  if (value >= low && value < high) return;
  throw Error(fmt::format("group {}: {} is {}; it must be at least {} and below {}", group, name, value, low, high));
}

void check_hyper(std::size_t group, const element::AdamHyperParameters& hyper) {
  check_hyper(group, "lr", hyper.lr, 0.0);
  check_hyper(group, "beta1", hyper.beta1, 0.0, 1.0);
  check_hyper(group, "beta2", hyper.beta2, 0.0, 1.0);
  check_hyper(group, "eps", hyper.eps, 0.0);
  check_hyper(group, "weight_decay", hyper.weight_decay, kLowest);
  // What enters the step is formed of several.
  check_hyper(group, "lr * weight_decay", hyper.lr * hyper.weight_decay, kLowest);
  check_hyper(group, "lr / (1 - beta1)", hyper.lr / (1.0 - hyper.beta1), kLowest);
}
void check_hyper(std::size_t group, const element::SgdHyperParameters& hyper) {
  check_hyper(group, "lr", hyper.lr, 0.0);
  check_hyper(group, "momentum", hyper.momentum, 0.0);
  check_hyper(group, "dampening", hyper.dampening, kLowest);
  check_hyper(group, "weight_decay", hyper.weight_decay, kLowest);
  if (hyper.nesterov && (hyper.momentum == 0.0 || hyper.dampening != 0.0)) {
    throw Error(fmt::format("group {}: nesterov needs a momentum above 0 and a dampening of 0, but they are {} and {}",
                            group, hyper.momentum, hyper.dampening));
  }
}

}  // namespace gradfuse
