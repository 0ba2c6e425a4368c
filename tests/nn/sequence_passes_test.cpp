// Embeddings and attention on every SIMD target and on the device give the bits of the scalar target.
#include "src/nn/sequence_passes.hpp"

#include <functional>
#include <optional>

#include "tests/core/training.hpp"

namespace gradfuse::nn {
namespace {

using test::HostTensor;

class SequencePassesOn : public test::OnEveryMachine {
 protected:
  void SetUp() override {
    OnEveryMachine::SetUp();
    if (IsSkipped()) return;
    passes_ = make_sequence_passes<float>(*backend);
    reference_ = make_sequence_passes<float>(*scalar_);
  }

  std::size_t add(std::size_t numel) {
    tensors_.push_back(test::moderate_tensor(random_, DType::kFloat32, numel));
    return tensors_.size() - 1;
  }
  std::size_t add_ids(std::size_t numel, std::size_t vocabulary) {
    const std::size_t index = add(numel);
    for (std::size_t i = 0; i < numel; ++i) tensors_[index].set_bits(i, (i * i + 3 * i) % vocabulary);
    return index;
  }
  static float* data(std::vector<HostTensor>& tensors, std::size_t index) {
    return static_cast<float*>(tensors[index].view().data);
  }
  static const std::int32_t* ids(std::vector<HostTensor>& tensors, std::size_t index) {
    return static_cast<const std::int32_t*>(tensors[index].view().data);
  }
  void expect_same_bits(const std::function<void(SequencePasses<float>&, std::vector<HostTensor>&)>& pass) {
    std::vector<HostTensor> got = tensors_, expected = tensors_;
    pass(*passes_, got);
    pass(*reference_, expected);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(test::same_bits(got[i], expected[i])) << "tensor " << i;
      EXPECT_TRUE(got[i].guards_are_intact()) << "tensor " << i;
    }
    tensors_.clear();
  }

  std::vector<HostTensor> tensors_;

 private:
  test::Random random_{5};
  std::shared_ptr<const Backend> scalar_ = cpu_backend({.threads = 1, .target = "scalar"});
  std::unique_ptr<SequencePasses<float>> passes_, reference_;
};
INSTANTIATE_TEST_SUITE_P(EveryMachine, SequencePassesOn, testing::ValuesIn(test::all_machines()), test::machine_name);

TEST_P(SequencePassesOn, Embeddings) {
  constexpr std::size_t kVocabulary = 13, kContext = 9;
  for (const SequenceShape& shape : {SequenceShape{1, 1, 1, 1}, {2, 7, 24, 2}, {3, 9, 70, 1}}) {
    for (const Destination destination : {Destination::kOverwrite, Destination::kAddTo}) {
      SCOPED_TRACE(shape.width);
      const std::size_t tokens = add(kVocabulary * shape.width), positions = add(kContext * shape.width),
                        y = add(shape.rows() * shape.width), y_grad = add(shape.rows() * shape.width),
                        token_grad = add(kVocabulary * shape.width), position_grad = add(kContext * shape.width),
                        id = add_ids(shape.rows(), kVocabulary);
      expect_same_bits([&](auto& passes, auto& t) {
        passes.embed(shape, ids(t, id), data(t, tokens), data(t, positions), data(t, y));
        passes.embed_gradient(shape, ids(t, id), data(t, y_grad), kVocabulary, data(t, token_grad), destination,
                              kContext, data(t, position_grad), destination);
      });
    }
  }
}

TEST_P(SequencePassesOn, Attention) {
  for (const SequenceShape& shape :
       {SequenceShape{1, 1, 4, 1}, {2, 7, 12, 3}, {1, 33, 32, 1}, {2, 70, 40, 2}, {1, 40, 128, 1}}) {
    SCOPED_TRACE(testing::Message() << shape.positions << " positions, heads of " << shape.head_dim());
    const std::size_t stream = shape.rows() * shape.width, qkv = add(3 * stream), out = add(stream),
                      log_sums = add(shape.rows() * shape.heads), out_grad = add(stream), qkv_grad = add(3 * stream);
    expect_same_bits([&](auto& passes, auto& t) {
      const AttentionArrays<float> arrays{data(t, qkv), data(t, out), data(t, log_sums)};
      passes.attention(shape, arrays);
      passes.attention_gradient(shape, arrays, data(t, out_grad), data(t, qkv_grad));
    });
  }
}

}  // namespace
}  // namespace gradfuse::nn
