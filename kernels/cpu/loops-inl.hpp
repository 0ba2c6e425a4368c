// All loops of one target and the table of them. Included by simd_targets.cpp once per SIMD target and by
// scalar_target.cpp, inside the target's namespace and after its arithmetic: no guard.

#include "kernels/element/accumulate.hpp"
#include "kernels/element/adam.hpp"
#include "kernels/element/sgd.hpp"
#include "kernels/element/transcendental.hpp"

#include "kernels/element/activation.hpp"

#include "kernels/cpu/vector_walk-inl.hpp"

#include "kernels/cpu/accumulate-inl.hpp"
#include "kernels/cpu/value-inl.hpp"

#include "kernels/cpu/attention-inl.hpp"
#include "kernels/cpu/layers-inl.hpp"
#include "kernels/cpu/norm-inl.hpp"
#include "kernels/cpu/scale-inl.hpp"
#include "kernels/cpu/step-inl.hpp"

/// One table entry: the loops that take a gradient or an input of type `T`.
template <class T>
void add_loops_of(Loops& loops) {
  constexpr auto kType = static_cast<std::size_t>(dtype_of<T>);
  loops.accumulate_first[kType] = accumulate_first_loop<T>;
  loops.accumulate_later[kType] = accumulate_later_loop<T>;
  loops.accumulate_first_f64[kType] = accumulate_first_f64_loop<T>;
  loops.accumulate_later_f64[kType] = accumulate_later_f64_loop<T>;
  loops.max_magnitude_bits[kType] = max_magnitude_loop<T>;
  loops.axpby[kType] = axpby_loop<T>;
  loops.scale[kType] = {};
  loops.scale[kType][static_cast<std::size_t>(DType::kFloat32)] = scale_loop<T, float>;
  loops.scale[kType][static_cast<std::size_t>(DType::kFloat16)] = scale_loop<T, Float16>;
  loops.scale[kType][static_cast<std::size_t>(DType::kBFloat16)] = scale_loop<T, BFloat16>;
}

template <bool kL2>
constexpr std::array<std::array<Loops::Sgd, 2>, 3> sgd_loops() {
  using enum Momentum;
  return {{{sgd_loop<kL2, kNone, false>, sgd_loop<kL2, kNone, false>},
           {sgd_loop<kL2, kFirst, false>, sgd_loop<kL2, kFirst, true>},
           {sgd_loop<kL2, kLater, false>, sgd_loop<kL2, kLater, true>}}};
}

inline Loops make_loops(std::string_view target) {
  Loops loops{};
  loops.target = target;
  add_loops_of<float>(loops);
  add_loops_of<Float16>(loops);
  add_loops_of<BFloat16>(loops);
  add_loops_of<double>(loops);
  loops.sum_of_squares = sum_of_squares_loop;
  loops.adam = {{{adam_loop<false, false>, adam_loop<false, true>}, {adam_loop<true, false>, adam_loop<true, true>}}};
  loops.sgd = {sgd_loops<false>(), sgd_loops<true>()};
  loops.zero = zero_loop;
  loops.layers = {.activate = {activate_loop<Relu>, activate_loop<Gelu>},
                  .activation_gradient = {activation_gradient_loop<Relu>, activation_gradient_loop<Gelu>},
                  .sum_of_exponentials = sum_of_exponentials_loop,
                  .softmax_gradient = softmax_gradient_loop,
                  .attention = attention_loop,
                  .attention_gradient = attention_gradient_loop};
  return loops;
}
