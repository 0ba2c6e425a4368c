#include <fmt/format.h>

#include <algorithm>
#include <gradfuse/error.hpp>
#include <gradfuse/passes.hpp>

#include "src/backend/backend.hpp"
#include "src/backend/canonical_sum.hpp"
#include "src/backend/device_array.hpp"
#include "src/core/check_hyper.hpp"
#include "src/core/check_view.hpp"
#include "src/core/hyper_parameters.hpp"
#include "src/core/joins.hpp"

namespace gradfuse {
namespace {

struct NamedList {
  std::string_view name;
  const ConstTensorList& list;
};

void check_same_shape(const NamedList& a, const NamedList& b) {
  const auto a_views = a.list.views(), b_views = b.list.views();
  if (a_views.size() != b_views.size()) {
    throw Error(fmt::format("`{}` has {} tensors, `{}` has {}", a.name, a_views.size(), b.name, b_views.size()));
  }
  for (std::size_t t = 0; t < a_views.size(); ++t) {
    if (a_views[t].numel != b_views[t].numel) {
      throw Error(fmt::format("tensor {}: `{}` has {} elements, `{}` has {}", t, a.name, a_views[t].numel, b.name,
                              b_views[t].numel));
    }
  }
  if (a.list.backend().device() != b.list.backend().device()) {
    throw Error(fmt::format("`{}` and `{}` are on two devices; move one", a.name, b.name));
  }
}

/// What is written may be what is read, in place; a partial overlap would be read after it was overwritten.
void check_may_write(const NamedList& in, const NamedList& out) {
  check_same_shape(in, out);
  for (std::size_t t = 0; t < in.list.views().size(); ++t) {
    const ConstTensorView &from = in.list.views()[t], &to = out.list.views()[t];
    const bool in_place = from.data == to.data && from.dtype == to.dtype;
    if (!in_place && overlap(from, to)) {
      throw Error(fmt::format("tensor {}: `{}` and `{}` overlap without being the same", t, in.name, out.name));
    }
  }
}

/// Two lists that one pass reads and writes element by element, each for itself.
void check_apart(const NamedList& a, const NamedList& b) {
  check_same_shape(a, b);
  for (std::size_t t = 0; t < a.list.views().size(); ++t) {
    if (overlap(a.list.views()[t], b.list.views()[t])) {
      throw Error(fmt::format("tensor {}: `{}` and `{}` overlap; give each memory of its own", t, a.name, b.name));
    }
  }
}

void check_float32(const NamedList& list) {
  for (std::size_t t = 0; t < list.list.views().size(); ++t) {
    const DType dtype = list.list.views()[t].dtype;
    if (dtype != DType::kFloat32) {
      throw Error(fmt::format("tensor {} of `{}` is {}; it must be float32", t, list.name, dtype_name(dtype)));
    }
  }
}

/// Where every list of a step goes on from tensor to tensor.
std::vector<std::uint8_t> joins_of(std::span<const NamedList> lists) {
  std::vector<std::uint8_t> joins(lists.front().list.views().size(), 0);
  for (std::size_t t = 1; t < joins.size(); ++t) {
    joins[t] = std::ranges::all_of(
        lists, [&](const NamedList& named) { return is_joined(named.list.views()[t - 1], named.list.views()[t]); });
  }
  return joins;
}

/// The lists of a step: float32, of one shape, none sharing memory with another.
void check_step_lists(std::span<const NamedList> lists) {
  for (std::size_t i = 0; i < lists.size(); ++i) {
    check_float32(lists[i]);
    for (std::size_t j = 0; j < i; ++j) check_apart(lists[j], lists[i]);
  }
}

float* floats(const TensorList& list, std::size_t tensor) { return static_cast<float*>(list.writable()[tensor].data); }

void check_step(std::int64_t step) {
  if (step < 1) throw Error(fmt::format("step is {}; it counts from 1 and includes the step to be made", step));
}

/// Gradients that are ready to be applied, as values of one window: FP32 in place of the accumulator, others as pending
/// with a weight of 1, which widens them on the way.
struct ReadyValues {
  explicit ReadyValues(const ConstTensorList& list) : table(list.table()) {
    for (const ConstTensorView& view : list.views()) {
      const bool in_place = view.dtype == DType::kFloat32;
      data.push_back(const_cast<void*>(view.data));  // read through only: these passes do not write the accumulator
      is_written.push_back(in_place ? 1 : 0);
      pending.push_back(in_place ? ConstTensorView{} : view);
    }
  }
  Values values(Joins joins) const {
    return {.table = table,
            .acc = {DType::kFloat32, data, joins, is_written},
            .pending = pending,
            .pending_joins = joins,
            .weight = 1.0f};
  }

  const WorkTable& table;
  std::vector<void*> data;
  std::vector<std::uint8_t> is_written;
  std::vector<ConstTensorView> pending;
};

/// The hyper-parameters of the one group, where the pass reads them.
template <class T>
class Uploaded {
 public:
  Uploaded(const Backend& backend, const T& value) {
    array_.grow(backend.memory(), 1);
    array_.set(backend.memory(), 0, value);
  }
  const T* get() const { return array_.data(); }

 private:
  DeviceArray<T> array_;
};

void adam_pass(const AdamLists& lists, const element::AdamHyperParameters& hyper, std::int64_t step) {
  check_step(step);
  check_hyper(0, hyper);
  if (hyper.amsgrad != (lists.max_exp_avg_sq != nullptr)) {
    throw Error("`max_exp_avg_sq` must be given with amsgrad, and only then");
  }
  std::vector<NamedList> all{
      {"grad", lists.grad}, {"param", lists.param}, {"exp_avg", lists.exp_avg}, {"exp_avg_sq", lists.exp_avg_sq}};
  if (lists.max_exp_avg_sq != nullptr) all.push_back({"max_exp_avg_sq", *lists.max_exp_avg_sq});
  check_step_lists(all);
  const std::size_t num_tensors = lists.param.views().size();
  std::vector<AdamTensor> tensors;
  for (std::size_t t = 0; t < num_tensors; ++t) {
    tensors.push_back({floats(lists.param, t), floats(lists.exp_avg, t), floats(lists.exp_avg_sq, t),
                       lists.max_exp_avg_sq == nullptr ? nullptr : floats(*lists.max_exp_avg_sq, t), TensorView{}});
  }
  const std::vector<std::uint32_t> group_of(num_tensors, 0);
  const ReadyValues grads(lists.grad);
  const Backend& backend = lists.param.backend();
  const std::vector<std::uint8_t> joins = joins_of(all);
  backend.adam({.values = grads.values(joins),
                .tensors = tensors,
                .joins = joins,
                .group_of = group_of,
                .groups = Uploaded(backend, hyper).get(),
                .control = nullptr,
                .step = step});
}

/// By tensor.
std::vector<double> sums_of_squares(const ConstTensorList& tensors) {
  const ReadyValues values(tensors);
  const Backend& backend = tensors.backend();
  DeviceArray<double> by_chunk, by_tensor;
  by_chunk.grow(backend.memory(), tensors.table().chunks().size());
  by_tensor.grow(backend.memory(), tensors.views().size());
  const Sums sums{by_chunk.data(), by_tensor.data()};
  backend.stats({values.values({}), sums});
  backend.fold_sums(tensors.table(), sums);
  return by_tensor.to_host(backend.memory());
}

}  // namespace

void zero(const TensorList& out) { out.backend().zero(out.table(), out.writable()); }

namespace {
void check_not_float64(const TensorList& out) {
  for (std::size_t t = 0; t < out.views().size(); ++t) {
    if (out.views()[t].dtype != DType::kFloat64) continue;
    throw Error(
        fmt::format("tensor {} of `out` is float64, but the passes compute in float32; use a float32 tensor", t));
  }
}
}  // namespace

void scale(const ConstTensorList& in, const TensorList& out, float factor, bool* found_nonfinite) {
  check_not_float64(out);
  check_may_write({"in", in}, {"out", out});
  out.backend().scale(out.table(), factor, in.views(), out.writable(), found_nonfinite);
}

void cast(const ConstTensorList& in, const TensorList& out) { scale(in, out, 1.0f); }

void axpby(float a, const ConstTensorList& x, float b, const ConstTensorList& y, const TensorList& out) {
  check_float32({"y", y});
  check_float32({"out", out});
  check_may_write({"x", x}, {"out", out});
  check_may_write({"y", y}, {"out", out});
  out.backend().axpby(out.table(), a, x.views(), b, y.views(), out.writable());
}

double l2_norm(const ConstTensorList& tensors) { return std::sqrt(canonical_sum(sums_of_squares(tensors))); }

std::vector<double> l2_norm_per_tensor(const ConstTensorList& tensors) {
  std::vector<double> norms = sums_of_squares(tensors);
  for (double& norm : norms) norm = std::sqrt(norm);
  return norms;
}

double inf_norm(const ConstTensorList& tensors) {
  return tensors.backend().max_magnitude(tensors.table(), tensors.views());
}

void clip(const TensorList& tensors, double norm, double max_norm) {
  if (!(max_norm >= 0.0)) throw Error(fmt::format("max_norm is {}; it must be at least 0", max_norm));
  if (norm < 0.0) throw Error(fmt::format("norm is {}; a norm is not negative", norm));
  check_not_float64(tensors);
  const double coef = element::clip_coefficient(norm, max_norm);
  if (coef != 1.0) scale(tensors, tensors, static_cast<float>(coef));
}

void adamw_step(const AdamLists& lists, const AdamWOptions& options, std::int64_t step) {
  adam_pass(lists, hyper_parameters(options), step);
}
void adam_step(const AdamLists& lists, const AdamOptions& options, std::int64_t step) {
  adam_pass(lists, hyper_parameters(options), step);
}

void sgd_step(const SgdLists& lists, const SgdOptions& options, std::int64_t step) {
  const element::SgdHyperParameters hyper = hyper_parameters(options);
  check_step(step);
  check_hyper(0, hyper);
  if ((hyper.momentum != 0.0) != (lists.momentum_buffer != nullptr)) {
    throw Error("`momentum_buffer` must be given with momentum, and only then");
  }
  std::vector<NamedList> all{{"grad", lists.grad}, {"param", lists.param}};
  if (lists.momentum_buffer != nullptr) all.push_back({"momentum_buffer", *lists.momentum_buffer});
  check_step_lists(all);
  const std::size_t num_tensors = lists.param.views().size();
  std::vector<SgdTensor> tensors;
  for (std::size_t t = 0; t < num_tensors; ++t) {
    tensors.push_back({floats(lists.param, t),
                       lists.momentum_buffer == nullptr ? nullptr : floats(*lists.momentum_buffer, t), TensorView{}});
  }
  const std::vector<std::uint32_t> group_of(num_tensors, 0);
  const ReadyValues grads(lists.grad);
  const Backend& backend = lists.param.backend();
  const std::vector<std::uint8_t> joins = joins_of(all);
  backend.sgd({.values = grads.values(joins),
               .tensors = tensors,
               .joins = joins,
               .group_of = group_of,
               .groups = Uploaded(backend, hyper).get(),
               .control = nullptr,
               .step = step});
}

}  // namespace gradfuse
