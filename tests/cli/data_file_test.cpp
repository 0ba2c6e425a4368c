#include "tests/cli/program.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace gradfuse::cli {
namespace {

using testing::HasSubstr;

std::string digits_csv() {
  std::ifstream file(GRADFUSE_DATA_DIR "/digits.csv");
  return {std::istreambuf_iterator<char>(file), {}};
}

class DataFile : public ProgramTest {
 protected:
  Result train_on(const std::string& content) const {
    const std::filesystem::path path = folder_ / "digits.csv";
    std::ofstream(path) << content;
    return run_program({"train", "mlp", "--quiet", "--epochs", "1", "--data", path.string()});
  }
};

TEST_F(DataFile, GivenIsTheOneThatIsRead) {
  const std::string all = digits_csv();
  const Result whole = train_on(all);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  const Result half = train_on(all.substr(0, all.find('\n', all.size() / 2) + 1));
  EXPECT_EQ(half.exit_code, 0) << half.err;
  EXPECT_NE(half.out, whole.out);
}

TEST_F(DataFile, CutOffInALineIsAnErrorWithItsNumber) {
  const std::string all = digits_csv();
  const Result result = train_on(all.substr(0, all.find('\n', 5000) + 20));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr("digits.csv:"), HasSubstr("cut off")));
  EXPECT_EQ(result.out, "");
}

TEST_F(DataFile, EmptyOrOfAnotherKindIsAnError) {
  for (const char* content : {"", "a,b,c\n",
                              "\x7f"
                              "ELF\n"}) {
    const Result result = train_on(content);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, testing::AllOf(HasSubstr("digits.csv"), testing::Not(HasSubstr(":0"))));
  }
}

TEST_F(DataFile, UnreadableIsAnError) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads every file";
  const std::filesystem::path path = folder_ / "digits.csv";
  std::ofstream(path) << digits_csv();
  std::filesystem::permissions(path, std::filesystem::perms::none);
  const Result result = run_program({"train", "mlp", "--data", path.string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(path.string()));
}

}  // namespace
}  // namespace gradfuse::cli
