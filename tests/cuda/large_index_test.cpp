// The kernels beyond 2^31 and 2^32 elements, without the memory: chunks of a tensor that would begin far below what
// there is of it.
#include "kernels/cuda/passes.hpp"

#include "tests/cuda/on_cuda.hpp"

namespace gradfuse::test {
namespace {

constexpr std::uint32_t kNumel = 4096 + 100;

/// `count` objects of T where host and device reach them.
template <class T>
class Shared {
 public:
  explicit Shared(const std::vector<T>& values) : memory_(values.size() * sizeof(T)) {
    std::ranges::copy(values, data());
  }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }

 private:
  SharedMemory memory_;
};

/// Two chunks of one tensor, of which only the elements from `begin` on exist.
class PartOfATensor {
 public:
  explicit PartOfATensor(std::int64_t begin) : begin_(begin), chunks_({{begin, 0, 4096}, {begin + 4096, 0, 100}}) {}

  cuda::WorkList work() const { return {chunks_.data(), first_chunk_.data(), multi_chunk_tensors_.data(), 2, 1, 1}; }
  /// Where the tensor would begin.
  template <class T = void>
  T* base_of(const HostTensor& part) const {
    const auto offset = static_cast<std::uint64_t>(begin_) * element_size(part.dtype());
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(part.view().data) - offset);
  }

 private:
  std::int64_t begin_;
  Shared<Chunk> chunks_;
  Shared<std::uint64_t> first_chunk_{{0, 2}};
  Shared<std::uint32_t> multi_chunk_tensors_{std::vector<std::uint32_t>{0}};
};

class CudaLargeIndex : public OnCuda {
 protected:
  /// All that the passes write, when the tensor's elements lie from `begin` on.
  std::vector<HostTensor> results_of_all_passes(std::int64_t begin) {
    Random random(5);
    const PartOfATensor part(begin);
    const cuda::Target target{stream, 2};
    const HostTensor grad = moderate_tensor(random, DType::kFloat16, kNumel);
    std::vector<HostTensor> t;  // acc, param, exp_avg, exp_avg_sq, momentum_buffer, out, sum
    for (int i = 0; i < 7; ++i) t.push_back(moderate_tensor(random, DType::kFloat32, kNumel));
    for (std::size_t i = 0; i < kNumel; ++i) t[3].set(i, std::abs(t[3].get(i)));  // a mean of squares
    t.push_back(HostTensor(DType::kBFloat16, kNumel));                            // model
    t.push_back(HostTensor(DType::kFloat64, 2));                                  // sums by chunk
    const auto base = [&](std::size_t i) { return part.base_of<float>(t[i]); };
    auto* sums = static_cast<double*>(t[8].view().data);

    const Shared<std::uint32_t> found({0, 0});
    const Shared<cuda::AddEntry> add({{part.base_of(grad), base(0), DType::kFloat16, 0}});
    check(cuda::add(target, {part.work(), 0, 2, add.data(), false, 0.75f, 1, found.data()}));

    const Shared<double> sum_of_first_chunk(std::vector<double>{0.0});  // which a tensor of one chunk has
    const Shared<cuda::ValueEntry> values({{base(0), part.base_of(grad), DType::kFloat16, 0}});
    const cuda::ValueArgs value_args{part.work(), values.data(), false, 0.5f};
    check(cuda::stats(target, value_args, {sums, sum_of_first_chunk.data()}));

    const Shared<cuda::AdamEntry> adam({{base(1), base(2), base(3), nullptr, part.base_of(t[7]), DType::kBFloat16, 0}});
    const Shared<element::AdamHyperParameters> adam_group({{1e-2, 0.9, 0.999, 1e-8, 0.01, true, false, false, true}});
    const Shared<element::AdamCoefs<float>> adam_coefs(std::vector<element::AdamCoefs<float>>(1));
    const cuda::AdamArgs adam_args{value_args, adam.data(), adam_group.data(), adam_coefs.data()};
    check(cuda::prepare(target, adam_args, 3));
    check(cuda::adam(target, adam_args, nullptr));

    const Shared<cuda::SgdEntry> sgd({{base(1), base(4), nullptr, DType::kFloat32, 0}});
    const Shared<element::SgdHyperParameters> sgd_group({{1e-2, 0.9, 0.0, 0.01, true, false}});
    const Shared<element::SgdCoefs<float>> sgd_coefs(std::vector<element::SgdCoefs<float>>(1));
    const cuda::SgdArgs sgd_args{value_args, sgd.data(), sgd_group.data(), sgd_coefs.data(), found.data() + 1};
    check(cuda::prepare(target, sgd_args, 2));
    check(cuda::sgd(target, sgd_args, nullptr));

    const Shared<cuda::InEntry> in({{base(1), DType::kFloat32}});
    const Shared<cuda::OutEntry> out({{base(5), DType::kFloat32}}), sum({{base(6), DType::kFloat32}});
    const Shared<cuda::InEntry> y({{base(5), DType::kFloat32}});
    check(cuda::scale(target, part.work(), 3.0f, in.data(), out.data(), found.data()));
    check(cuda::axpby(target, part.work(), 2.0f, in.data(), -1.0f, y.data(), sum.data()));
    const Shared<cuda::OutEntry> zeroed({{base(0), DType::kFloat32}});
    check(cuda::zero(target, part.work(), zeroed.data()));
    wait_for({Device::Kind::kCuda, 0});
    for (const HostTensor& tensor : t) EXPECT_TRUE(tensor.guards_are_intact());
    return t;
  }
  static void check(cudaError_t status) { ASSERT_EQ(status, cudaSuccess); }
};

TEST_F(CudaLargeIndex, GivesTheBitsOfTheFirstElements) {
  const std::vector<HostTensor> expected = results_of_all_passes(0);
  for (const std::int64_t begin : {std::int64_t{1} << 31, (std::int64_t{1} << 32) + 4096, std::int64_t{1} << 40}) {
    SCOPED_TRACE(begin);
    const std::vector<HostTensor> got = results_of_all_passes(begin);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(same_bits(got[i], expected[i])) << "tensor " << i;
  }
  EXPECT_EQ(expected[0].get(17), 0.0);
  EXPECT_NE(expected[6].get(4100), 0.0);
}

}  // namespace
}  // namespace gradfuse::test
