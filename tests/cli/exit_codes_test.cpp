// A bad command line exits with 2, a failure with 1; either has a message that says what to do and leaves no file
// behind.
#include "tests/cli/program.hpp"

#include <gmock/gmock.h>
#include <gradfuse/backend.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace gradfuse::cli {
namespace {

using testing::HasSubstr;

struct BadArguments {
  std::string name;
  std::vector<std::string> arguments;  // after `train mlp`
  std::string message;
};

class BadTrainArguments : public ProgramTest, public testing::WithParamInterface<BadArguments> {};

TEST_P(BadTrainArguments, AreExplainedBeforeAnyFileIsWritten) {
  const std::filesystem::path log = folder_ / "run.jsonl";
  std::vector<std::string> arguments = {"train", "mlp", "--log", log.string()};
  arguments.insert(arguments.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const Result result = run_program(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, testing::StartsWith("gradfuse: error: "));
  EXPECT_THAT(result.err, HasSubstr(GetParam().message));
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(log));
}

INSTANTIATE_TEST_SUITE_P(
    EachFlag, BadTrainArguments,
    testing::Values(
        BadArguments{"UnknownFlag", {"--no-such-flag"}, "--no-such-flag"},
        BadArguments{"ExtraWord", {"digits"}, "digits"},
        BadArguments{"MicroBatchZero", {"--micro-batch", "0"}, "--micro-batch: 0"},
        BadArguments{"MicroBatchNegative", {"--micro-batch", "-3"}, "--micro-batch: -3"},
        BadArguments{"MicroBatchTooLong", {"--micro-batch", "99999999999999999999"}, "--micro-batch: 9999"},
        BadArguments{"AccumStepsZero", {"--accum-steps", "0"}, "--accum-steps: 0"},
        BadArguments{"AccumStepsWord", {"--accum-steps", "four"}, "--accum-steps: four"},
        BadArguments{"EpochsZero", {"--epochs", "0"}, "--epochs: 0"},
        BadArguments{"EpochsFraction", {"--epochs", "1.5"}, "--epochs: 1.5"},
        BadArguments{"EpochsMissing", {"--epochs"}, "--epochs"},
        BadArguments{"SeedNegative", {"--seed", "-1"}, "--seed: -1"},
        BadArguments{"Precision", {"--precision", "fp8"}, "fp8 not in {fp32,fp16,bf16}"},
        BadArguments{"Optimizer", {"--optimizer", "lion"}, "lion not in {adamw,adam,sgd}"},
        BadArguments{"LrZero", {"--lr", "0"}, "lr is 0"}, BadArguments{"LrNegative", {"--lr", "-0.1"}, "lr is -0.1"},
        BadArguments{"LrNan", {"--lr", "nan"}, "lr is nan"}, BadArguments{"LrInfinite", {"--lr", "inf"}, "lr is inf"},
        BadArguments{"LrWord", {"--lr", "fast"}, "fast"},
        BadArguments{"LrScaling", {"--lr-scaling", "cubic"}, "cubic not in {none,linear,sqrt}"},
        BadArguments{"EpsNegative", {"--eps", "-1"}, "eps is -1"},
        BadArguments{"EpsOfSgd", {"--optimizer", "sgd", "--eps", "1e-8"}, "sgd has none"},
        BadArguments{"MaxGradNormNegative", {"--max-grad-norm", "-1"}, "max_grad_norm is -1"},
        BadArguments{"MaxGradNormNan", {"--max-grad-norm", "nan"}, "max_grad_norm is nan"},
        BadArguments{"LossScaleWord", {"--loss-scale", "big"}, "big is none of dynamic, off"},
        BadArguments{"LossScaleZero", {"--loss-scale", "0"}, "loss scale 0"},
        BadArguments{"LossScaleNegative", {"--loss-scale", "-8"}, "loss scale -8"},
        BadArguments{"LossScaleTrailing", {"--loss-scale", "1024x"}, "1024x is none of"},
        BadArguments{"ThreadsNegative", {"--threads", "-1"}, "threads is -1"},
        BadArguments{"ThreadsTooMany", {"--threads", "100000"}, "threads is 100000"},
        BadArguments{"Target", {"--target", "mmx"}, "mmx not in {"},
        BadArguments{"Device", {"--device", "tpu"}, "tpu not in {auto,cpu,cuda}"},
        BadArguments{"DeviceWithTarget", {"--device", "cuda", "--target", "scalar"}, "are of the cpu"},
        BadArguments{"Norm", {"--norm", "group"}, "group not in {none,layer,batch}"},
        BadArguments{"Activation", {"--activation", "tanh"}, "tanh not in {relu,gelu}"},
        BadArguments{"BatchNormOfOneRow", {"--norm", "batch", "--micro-batch", "1"}, "batch normalisation needs two"},
        BadArguments{"LogWithComparison", {"--compare-large-batch"}, "--log"}),
    [](const auto& info) { return info.param.name; });

TEST_F(ProgramTest, ALogOnTheDataIsABadCommandLine) {
  const std::filesystem::path data = folder_ / "digits.csv";
  std::filesystem::copy_file(GRADFUSE_DATA_DIR "/digits.csv", data);
  const Result result = run_program({"train", "mlp", "--data", data.string(), "--log", data.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("would be overwritten"));
  EXPECT_EQ(std::filesystem::file_size(data), std::filesystem::file_size(GRADFUSE_DATA_DIR "/digits.csv"));
}

TEST(ExitCodes, DataThatCannotBeReadIsAFailure) {
  for (const char* data : {"/no/such/file.csv", "/"}) {
    const Result result = run_program({"train", "mlp", "--data", data});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(std::string(data) + ": not a file"));
  }
}

TEST(ExitCodes, ADeviceThatIsNotThereIsNamedWithTheReason) {
  if (why_no_cuda().empty()) GTEST_SKIP() << "there is a GPU";
  const Result result = run_program({"train", "mlp", "--device", "cuda"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no CUDA: " + why_no_cuda()));
}

TEST(ExitCodes, BadArgumentsOfBenchAreABadCommandLine) {
  const std::vector<std::vector<std::string>> all = {{"--seconds", "0"},  {"--seconds", "nan"}, {"--seconds", "long"},
                                                     {"--threads", "-1"}, {"--target", "mmx"},  {"window"}};
  for (std::vector<std::string> arguments : all) {
    SCOPED_TRACE(arguments.back());
    arguments.insert(arguments.begin(), "bench");
    const Result result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, testing::AllOf(testing::StartsWith("gradfuse: error: "), HasSubstr(arguments.back()),
                                           HasSubstr("See gradfuse bench --help")));
    EXPECT_EQ(result.out, "");
  }
}

TEST(ExitCodes, AFileForBenchThatCannotBeOpenedIsAFailureBeforeMeasuring) {
  const Result result = run_program({"bench", "--json", "/no/such/folder/bench.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::StartsWith("gradfuse: error: cannot open \"/no/such/folder/bench.json\""));
}

TEST(ExitCodes, WithoutACommandTheProgramSaysSo) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{}, {"train"}}) {
    const Result result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, testing::AllOf(HasSubstr("subcommand is required"), HasSubstr("--help")));
  }
}

TEST(ExitCodes, TheHelpThatIsPointedToBelongsToTheCommand) {
  EXPECT_THAT(run_program({"train", "mlp", "--epochs", "x"}).err, HasSubstr("See gradfuse train mlp --help"));
  EXPECT_THAT(run_program({"info", "x"}).err, HasSubstr("See gradfuse info --help"));
}

TEST(ExitCodes, AComparisonInHalfPrecisionIsRefused) {
  const Result result = run_program({"train", "mlp", "--compare-large-batch", "--precision", "fp16"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("precision is float16"));
}

TEST(ExitCodes, ALogOnAFullDiskIsAnErrorWithItsReason) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  const Result result = run_program({"train", "mlp", "--quiet", "--log", "/dev/full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "gradfuse: error: log file /dev/full cannot be written: No space left on device\n");
  EXPECT_EQ(result.out, "");
}

TEST(ExitCodes, ALogThatCannotBeOpenedIsAnErrorBeforeTraining) {
  const Result result = run_program({"train", "mlp", "--log", "/no/such/folder/run.jsonl"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr("/no/such/folder/run.jsonl"), HasSubstr("No such file")));
  EXPECT_EQ(result.out, "");
}

TEST(ExitCodes, AFullDiskUnderStandardOutputIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  for (const char* command : {"info", "--help"}) {
    const Result result = run_program({command}, "/dev/full");
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_THAT(result.err, HasSubstr("No space left")) << command;
  }
  EXPECT_EQ(run_program({"train", "mlp", "--epochs", "1"}, "/dev/full").exit_code, 1);
}

TEST(ExitCodes, DivergenceIsAnErrorThatNamesTheTensorAndARemedy) {
  const Result result = run_program({"train", "mlp", "--quiet", "--loss-scale", "1e30"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              testing::AllOf(HasSubstr("training has diverged"), HasSubstr("layer"), HasSubstr("lower loss_scale")));
}

}  // namespace
}  // namespace gradfuse::cli
