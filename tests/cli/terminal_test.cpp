#include "tests/cli/program.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace gradfuse::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t num_control_characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char c) { return c != '\n' && (c < ' ' || c > '~'); }));
}

TEST(Progress, IntoAFileIsPlainLines) {
  const Result result = run_program({"train", "mlp", "--epochs", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(num_control_characters(result.out), 0u) << result.out;
  EXPECT_THAT(result.out, testing::AllOf(HasSubstr("epoch 1/2"), HasSubstr("epoch 2/2"), HasSubstr("\ntest accuracy "),
                                         HasSubstr("peak memory "), Not(HasSubstr("[#"))));
}

TEST(Progress, OnATerminalIsABarThatIsErasedAgain) {
  const Result result = run_in_terminal({"train", "mlp", "--epochs", "2"}, "xterm");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, testing::AllOf(HasSubstr("\r\x1b[K[#-"), HasSubstr("] 1/24"), HasSubstr("\x1b[Kepoch 2/2"),
                                         HasSubstr("\x1b[Ktest accuracy ")));
}

TEST(Progress, OnATerminalThatCannotEraseIsPlainLines) {
  const Result result = run_in_terminal({"train", "mlp", "--epochs", "2"}, "dumb");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, testing::AllOf(HasSubstr("epoch 2/2"), Not(HasSubstr("\x1b"))));
}

TEST(Progress, LeavesNoBarUnderAnErrorMessage) {
  const Result result = run_in_terminal({"train", "mlp", "--loss-scale", "1e30"}, "xterm");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("\r\x1b[Kgradfuse: error: training has diverged"));
}

TEST(Progress, QuietIsOneLineEvenOnATerminal) {
  const Result result = run_in_terminal({"train", "mlp", "--epochs", "2", "--quiet"}, "xterm");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, testing::StartsWith("test accuracy "));
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 1);
}

}  // namespace
}  // namespace gradfuse::cli
