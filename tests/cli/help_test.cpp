#include "tests/cli/program.hpp"

#include <gmock/gmock.h>
#include <gradfuse/backend.hpp>

#include <string>
#include <vector>

namespace gradfuse::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Help, OfTheProgramListsItsCommandsAndExitCodes) {
  const Result help = run_program({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(help.out, AllOf(HasSubstr("train"), HasSubstr("bench"), HasSubstr("info"), HasSubstr("--version"),
                              HasSubstr("Exit codes: 0 success; 1 failure"), HasSubstr("2 the command line is wrong")));
}

TEST(Help, OfTrainMlpNamesEveryFlagWithChoicesDefaultsAndExamples) {
  const Result help = run_program({"train", "mlp", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const char* flag : {"--micro-batch ROWS [32]",
                           "--accum-steps N [4]",
                           "--precision fp32|fp16|bf16 [fp16]",
                           "--optimizer adamw|adam|sgd [adamw]",
                           "--lr RATE [0.003]",
                           "--lr-scaling none|linear|sqrt [none]",
                           "--max-grad-norm NORM [1]",
                           "--loss-scale dynamic|off|NUMBER [dynamic]",
                           "--unfused",
                           "--epochs N [30]",
                           "--seed N [0]",
                           "--device auto|cpu|cuda [auto]",
                           "--threads N [0]",
                           "--target ",
                           "--log FILE",
                           "--quiet",
                           "--data FILE",
                           "--norm none|layer|batch [none]",
                           "--activation relu|gelu [gelu]",
                           "--compare-large-batch",
                           "Examples:"}) {
    EXPECT_THAT(help.out, HasSubstr(flag));
  }
}

TEST(Help, OfBenchNamesEveryFlagWithItsUnitOrChoicesAndDefault) {
  const Result help = run_program({"bench", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  for (const std::string& flag : {std::string("--threads N [0]"), "--target " + cpu_targets().front(),
                                  std::string("--seconds SECONDS [30]"), std::string("--json FILE")}) {
    EXPECT_THAT(help.out, HasSubstr(flag));
  }
}

TEST(Help, OfNoCommandShowsCLI11sNamesOfTypes) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{}, {"train"}, {"train", "mlp"}, {"bench"}, {"info"}}) {
    std::vector<std::string> arguments = command;
    arguments.push_back("--help");
    EXPECT_THAT(run_program(arguments).out, Not(ContainsRegex(" (INT|UINT|FLOAT|TEXT|BOOLEAN)[ \n]")));
  }
}

TEST(Version, IsOneLine) {
  const Result version = run_program({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("gradfuse [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Info, NamesTargetsThreadsAndTheMissingDevice) {
  const Result info = run_program({"info"});
  EXPECT_EQ(info.exit_code, 0);
  EXPECT_EQ(info.err, "");
  for (const std::string& target : cpu_targets()) EXPECT_THAT(info.out, HasSubstr(target));
  EXPECT_THAT(info.out, AllOf(HasSubstr("SIMD target in use: " + cpu_targets().front()), HasSubstr("threads: "),
                              HasSubstr("cuda: ")));
}

}  // namespace
}  // namespace gradfuse::cli
