// `gradfuse train transformer`, end to end.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace gradfuse::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class TransformerProgram : public ProgramTest {
 protected:
  static std::vector<std::string> small(std::vector<std::string> more) {
    std::vector<std::string> arguments = {
        "train",    "transformer", "--steps", "4", "--context",     "24", "--width", "16",
        "--layers", "2",           "--heads", "2", "--micro-batch", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

TEST_F(TransformerProgram, LogsEveryStepAndASummaryByEveryRoute) {
  for (const char* route : {"unfused", "fused", "gemm", "streamed"}) {
    const std::string path = (folder_ / "run.jsonl").string();
    const Result result = run_program(small({"--route", route, "--log", path, "--quiet"}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, testing::StartsWith("validation loss "));
    std::vector<json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(lines[3]["event"], "step");
    EXPECT_GT(lines[3]["loss"], 3.0);
    EXPECT_EQ(lines[4]["event"], "summary");
    EXPECT_EQ(lines[4]["settings"]["route"], route);
    EXPECT_GT(lines[4]["validation_loss"], 3.0);
    EXPECT_EQ(lines[4]["parameters_digest"].get<std::string>().size(), 16u);
  }
}

TEST_F(TransformerProgram, PlansWithoutTraining) {
  const Result result = run_program({"train", "transformer", "--width", "384", "--layers", "6", "--heads", "6",
                                     "--context", "256", "--micro-batch", "4", "--plan"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::AllOf(HasSubstr("parameters, float32"), HasSubstr("accumulator"),
                                         HasSubstr("with 1 sequence of 256"), HasSubstr("with 4 sequences of 256")));
}

TEST_F(TransformerProgram, LearnsAnotherTextAndTokens) {
  const std::string path = (folder_ / "text").string();
  {
    std::ofstream file(path);
    for (int i = 0; i < 400; ++i) file << "abracadabra ";
  }
  const Result text = run_program(small({"--text", path, "--precision", "bf16"}));
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("training on text (4800 tokens)"));
  const Result tokens = run_program(small({"--tokens", path, "--vocabulary", "65536", "--quiet"}));
  EXPECT_EQ(tokens.exit_code, 0) << tokens.err;
}

TEST_F(TransformerProgram, SavesAModelThatWritesText) {
  const std::string path = (folder_ / "model.safetensors").string();
  ASSERT_EQ(run_program(small({"--save", path, "--quiet"})).exit_code, 0);
  const std::vector<std::string> sample = {"sample", path, "--prompt", "Anne", "--tokens", "30", "--seed", "2"};
  const Result text = run_program(sample);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, testing::StartsWith("Anne"));
  EXPECT_EQ(text.out.size(), 4u + 30u + 1u);
  EXPECT_EQ(run_program(sample).out, text.out);
  EXPECT_EQ(run_program({"sample", path, "--temperature", "-1"}).exit_code, 2);
  EXPECT_EQ(run_program({"sample", "/no/such/file"}).exit_code, 1);
}

TEST_F(TransformerProgram, RefusesABadCommandLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> bad = {
      {{"--heads", "3"}, "width 128 is no multiple of 3 heads"},
      {{"--context", "0"}, "0 is no whole number from 1 on"},
      {{"--context", "90000"}, "a context of 90000 needs 90001 there"},
      {{"--vocabulary", "90"}, "the model's vocabulary is 90"},
      {{"--route", "magic"}, "magic not in {unfused,fused,gemm,streamed}"},
      {{"--tokens", "/etc/hostname"}, "--tokens needs --vocabulary"},
      {{"--eps", "1e-8", "--optimizer", "sgd"}, "sgd has none"}};
  for (const auto& [arguments, message] : bad) {
    std::vector<std::string> all = {"train", "transformer"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Result result = run_program(all);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
  const Result missing = run_program(small({"--text", "/no/such/file"}));
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("/no/such/file: cannot be opened"));
}

TEST_F(TransformerProgram, ItsHelpNamesEveryFlag) {
  const Result help = run_program({"train", "transformer", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* flag : {"--route unfused|fused|gemm|streamed [gemm]", "--micro-batch SEQUENCES [8]", "--plan",
                           "--device auto|cpu|cuda [auto]", "--checkpoint-every BLOCKS [0]", "--text FILE",
                           "--tokens FILE", "--lr RATE [0.002]", "--precision fp32|fp16|bf16 [fp32]", "Examples:"}) {
    EXPECT_THAT(help.out, HasSubstr(flag));
  }
}

}  // namespace
}  // namespace gradfuse::cli
