#include <gmock/gmock.h>
#include <gradfuse/nn/token_text.hpp>

#include <fstream>
#include <string>
#include <vector>

#include "tests/error_of.hpp"
#include "tests/temporary_folder.hpp"

namespace gradfuse::nn {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

class TokenTextTest : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& bytes) const {
    std::filesystem::path path = folder_.path() / "text";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  static std::vector<std::int32_t> all(const TokenText& text) {
    std::vector<std::int32_t> tokens(text.size());
    text.read(0, tokens);
    return tokens;
  }
  test::TemporaryFolder folder_;
};

TEST_F(TokenTextTest, IsTheFilesBytesOrItsPairsOfBytes) {
  const std::filesystem::path path = write(std::string("a\xff\0\x01", 4));
  const TokenText bytes = TokenText::bytes_of(path);
  EXPECT_EQ(bytes.vocabulary(), 256u);
  EXPECT_THAT(all(bytes), ElementsAre(97, 255, 0, 1));
  const TokenText pairs = TokenText::tokens_of(path);
  EXPECT_EQ(pairs.vocabulary(), 65536u);
  EXPECT_THAT(all(pairs), ElementsAre(0xff61, 0x0100));
  std::vector<std::int32_t> part(2);
  bytes.read(1, part);
  EXPECT_THAT(part, ElementsAre(255, 0));
}

TEST_F(TokenTextTest, RefusesWhatIsNoText) {
  EXPECT_THAT(error_of([] { TokenText::bytes_of("/no/such/file"); }), HasSubstr("/no/such/file: cannot be opened"));
  EXPECT_THAT(error_of([&] { TokenText::bytes_of(folder_.path()); }), HasSubstr("not a regular file"));
  EXPECT_THAT(error_of([&] { TokenText::bytes_of(write("")); }), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of([&] { TokenText::tokens_of(write("abc")); }),
              HasSubstr("3 bytes are no whole number of tokens"));
}

}  // namespace
}  // namespace gradfuse::nn
