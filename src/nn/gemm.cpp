#include "src/nn/gemm.hpp"

#include <fmt/core.h>
#include <omp.h>
#include <gradfuse/error.hpp>
#include <oneapi/dnnl/dnnl.hpp>

#include <map>
#include <unordered_map>
#include <utility>

namespace gradfuse::nn {
namespace {

// A model has a handful of specs per micro-batch size; this bounds the memory of a caller who tries many sizes.
constexpr std::size_t kMaxCachedPrimitives = 512;

/// A transpose is a pair of strides: oneDNN reads the operand where it lies.
dnnl::memory::desc matrix_desc(std::size_t rows, std::size_t cols, Stored stored) {
  const auto r = static_cast<dnnl::memory::dim>(rows);
  const auto c = static_cast<dnnl::memory::dim>(cols);
  const dnnl::memory::dims strides = stored == Stored::kPlain ? dnnl::memory::dims{c, 1} : dnnl::memory::dims{1, r};
  return {{r, c}, dnnl::memory::data_type::f32, strides};
}

/// A compiled product with its three operands, whose data pointers are set at each call.
struct BoundMatmul {
  dnnl::matmul primitive;
  dnnl::memory a, b, c;
  std::unordered_map<int, dnnl::memory> arguments;
};

dnnl::matmul make_matmul(const dnnl::memory::desc& a, const dnnl::memory::desc& b, const dnnl::memory::desc& c,
                         Destination destination, const dnnl::engine& engine) {
  dnnl::primitive_attr attributes;
  if (destination == Destination::kAddTo) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul(dnnl::matmul::primitive_desc(engine, a, b, c, attributes));
#else
  return dnnl::matmul(dnnl::matmul::primitive_desc(dnnl::matmul::desc(a, b, c), attributes, engine));
#endif
}

BoundMatmul bind_matmul(const GemmSpec& spec, const dnnl::engine& engine) {
  const dnnl::memory::desc a = matrix_desc(spec.m, spec.k, spec.a);
  const dnnl::memory::desc b = matrix_desc(spec.k, spec.n, spec.b);
  const dnnl::memory::desc c = matrix_desc(spec.m, spec.n, Stored::kPlain);
  BoundMatmul bound{make_matmul(a, b, c, spec.c, engine),
                    dnnl::memory(a, engine, DNNL_MEMORY_NONE),
                    dnnl::memory(b, engine, DNNL_MEMORY_NONE),
                    dnnl::memory(c, engine, DNNL_MEMORY_NONE),
                    {}};
  bound.arguments = {{DNNL_ARG_SRC, bound.a}, {DNNL_ARG_WEIGHTS, bound.b}, {DNNL_ARG_DST, bound.c}};
  return bound;
}

// Up to here a second thread gains nothing: 96^3 took 15 us with one and with two, 128^3 37 and 20. On a busy machine
// it costs: waiting for each other at every product made a training run four times slower.
constexpr std::size_t kSingleThreadedProducts = std::size_t{1} << 20;

/// While it lives, parallel regions that this thread opens have one thread if the product is small.
class ThreadLimit {
 public:
  explicit ThreadLimit(const GemmSpec& spec) : before_(omp_get_max_threads()) {
    if (spec.m * spec.n * spec.k <= kSingleThreadedProducts) omp_set_num_threads(1);
  }
  ~ThreadLimit() { omp_set_num_threads(before_); }
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

}  // namespace

void check_spec(const GemmSpec& spec) {
  if (spec.m > 0 && spec.n > 0 && spec.k > 0) return;
  throw Error(fmt::format("gemm: m={} n={} k={}; each must be 1 or more", spec.m, spec.n, spec.k));
}

struct Gemm::Impl {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<GemmSpec, BoundMatmul> primitives;

  BoundMatmul& find(const GemmSpec& spec) {
    if (const auto found = primitives.find(spec); found != primitives.end()) return found->second;
    BoundMatmul bound = bind_matmul(spec, engine);
    if (primitives.size() >= kMaxCachedPrimitives) primitives.clear();
    return primitives.emplace(spec, std::move(bound)).first->second;
  }
};

Gemm::Gemm() : impl_(std::make_unique<Impl>()) {}
Gemm::~Gemm() = default;
Gemm::Gemm(Gemm&&) noexcept = default;
Gemm& Gemm::operator=(Gemm&&) noexcept = default;

void Gemm::multiply(const GemmSpec& spec, const float* a, const float* b, float* c) {
  check_spec(spec);
  const ThreadLimit limit(spec);  // also while oneDNN builds the primitive, which it does for a number of threads
  try {
    BoundMatmul& bound = impl_->find(spec);
    bound.a.set_data_handle(const_cast<float*>(a));  // oneDNN has no const handle; a source is only read
    bound.b.set_data_handle(const_cast<float*>(b));
    bound.c.set_data_handle(c);
    bound.primitive.execute(impl_->stream, bound.arguments);
    impl_->stream.wait();
  } catch (const dnnl::error& error) {
    throw Error(fmt::format("gemm: oneDNN refused m={} n={} k={}: {}", spec.m, spec.n, spec.k, error.what()));
  }
}

void Gemm::multiply(const GemmSpec& spec, const double* a, const double* b, double* c) {
  check_spec(spec);
  const std::size_t a_row = spec.a == Stored::kPlain ? spec.k : 1, a_col = spec.a == Stored::kPlain ? 1 : spec.m;
  const std::size_t b_row = spec.b == Stored::kPlain ? spec.n : 1, b_col = spec.b == Stored::kPlain ? 1 : spec.k;
  for (std::size_t i = 0; i < spec.m; ++i) {
    for (std::size_t j = 0; j < spec.n; ++j) {
      double sum = 0;
      for (std::size_t l = 0; l < spec.k; ++l) sum += a[i * a_row + l * a_col] * b[l * b_row + j * b_col];
      double& out = c[i * spec.n + j];
      out = spec.c == Destination::kOverwrite ? sum : out + sum;
    }
  }
}

}  // namespace gradfuse::nn
