#include <gmock/gmock.h>
#include <sys/resource.h>

#include <gradfuse/nn/sample.hpp>
#include <gradfuse/train/saved_transformer.hpp>

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "src/train/safetensors.hpp"
#include "tests/error_of.hpp"
#include "tests/temporary_folder.hpp"

namespace gradfuse::train {
namespace {

using test::error_of;
using testing::HasSubstr;

nn::TransformerOptions small() {
  return {.vocabulary = 13, .context = 6, .width = 8, .layers = 2, .heads = 2, .seed = 3};
}

class SavedTransformerTest : public testing::Test {
 protected:
  std::string bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string refusal() const {
    return error_of([&] { load_transformer(path_); });
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.safetensors";
};

TEST_F(SavedTransformerTest, ComesBackBitForBit) {
  for (const bool is_tied : {true, false}) {
    nn::TransformerOptions options = small();
    options.is_tied = is_tied;
    nn::Transformer model(options);
    save_transformer(path_, model, options);
    SavedTransformer saved = load_transformer(path_);
    EXPECT_EQ(saved.options.context, 6u);
    EXPECT_EQ(saved.options.is_tied, is_tied);
    const std::vector<std::int32_t> prompt = {1, 5, 2};
    EXPECT_EQ(saved.model.next_logits(prompt), model.next_logits(prompt));
  }
}

// By the format's description: a length, a header whose places are counted from its end, tensors in the order of names.
TEST_F(SavedTransformerTest, IsASafetensorsFile) {
  write_safetensors(path_, {.tensors = {{"b", {DType::kFloat16, {2}, std::vector<std::byte>(4, std::byte{7})}},
                                        {"a", {DType::kFloat32, {1, 2}, std::vector<std::byte>(8, std::byte{9})}}},
                            .metadata = {{"key", "value"}}});
  const std::string all = bytes();
  std::uint64_t size = 0;
  std::memcpy(&size, all.data(), sizeof size);
  EXPECT_EQ(size % 8, 0u);
  EXPECT_EQ(all.size(), 8 + size + 12);
  EXPECT_THAT(all.substr(8, size),
              testing::StartsWith(R"({"__metadata__":{"key":"value"},"a":{"dtype":"F32","shape":[1,2],)"
                                  R"("data_offsets":[0,8]},"b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]}})"));
  EXPECT_EQ(all.substr(8 + size), std::string(8, '\x09') + std::string(4, '\x07'));
}

TEST_F(SavedTransformerTest, RefusesWhatIsDamagedOrAnother) {
  nn::Transformer model(small());
  save_transformer(path_, model, small());
  const std::string whole = bytes();
  write(whole.substr(0, whole.size() - 1));
  EXPECT_THAT(refusal(), HasSubstr("has a place that does not fit its shape"));
  write(whole.substr(0, 100));
  EXPECT_THAT(refusal(), HasSubstr("cut short"));
  write("abc");
  EXPECT_THAT(refusal(), HasSubstr("ends before its header"));
  std::string damaged = whole;
  damaged[8] = 'x';
  write(damaged);
  EXPECT_THAT(refusal(), HasSubstr("a damaged one"));
  write_safetensors(path_, {});
  EXPECT_THAT(refusal(), HasSubstr("holds no Transformer"));
  write_safetensors(path_, {.tensors = {}, .metadata = {{"gradfuse.model", "transformer"}}});
  EXPECT_THAT(refusal(), HasSubstr("says \"\" for gradfuse.vocabulary"));
  EXPECT_THAT(error_of([] { load_transformer("/no/such/file"); }), HasSubstr("/no/such/file: cannot be read"));
}

TEST_F(SavedTransformerTest, AFullDiskLeavesTheOldFile) {
  nn::Transformer model(small());
  EXPECT_THAT(error_of([&] { save_transformer(folder_ / "none" / "model", model, small()); }),
              HasSubstr("cannot be written"));
  EXPECT_THAT(error_of([&] { save_transformer(folder_.path(), model, small()); }), HasSubstr("is no regular file"));
  save_transformer(path_, model, small());
  const std::string whole = bytes();
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // then a file that gets too large is an error, as on a full disk
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small_files{whole.size() / 2, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small_files), 0);
  const std::string message = error_of([&] { save_transformer(path_, model, small()); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("cannot be written"));
  EXPECT_EQ(bytes(), whole);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "nothing unfinished is left";
}

TEST(Sample, TheSameSeedWritesTheSameAndTemperatureZeroTheMostProbable) {
  nn::Transformer model(small());
  const auto text = [&](const nn::SampleOptions& options) {
    std::vector<std::int32_t> tokens;
    nn::sample(model, small(), {1, 2}, options, [&](std::int32_t token) { tokens.push_back(token); });
    return tokens;
  };
  const std::vector<std::int32_t> one = text({.tokens = 20, .temperature = 1.0, .seed = 4});
  EXPECT_EQ(one.size(), 20u);
  EXPECT_EQ(text({.tokens = 20, .temperature = 1.0, .seed = 4}), one);
  EXPECT_NE(text({.tokens = 20, .temperature = 1.0, .seed = 5}), one);
  const std::vector<std::int32_t> greedy = text({.tokens = 20, .temperature = 0.0});
  EXPECT_EQ(text({.tokens = 20, .temperature = 1.0, .top_k = 1, .seed = 9}), greedy);
  EXPECT_THAT(error_of([&] { text({.temperature = -1.0}); }), HasSubstr("temperature is -1"));
  EXPECT_THAT(error_of([&] { nn::sample(model, small(), {}, {}, {}); }), HasSubstr("the prompt is empty"));
}

}  // namespace
}  // namespace gradfuse::train
