#include "tests/cli/program.hpp"

#include <gmock/gmock.h>
#include <gradfuse/backend.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace gradfuse::cli {
namespace {

using nlohmann::json;

class TrainProgram : public ProgramTest {
 protected:
  /// The lines of the log of a run that must succeed.
  std::vector<json> log_of(std::vector<std::string> arguments) const {
    const std::string path = (folder_ / "run.jsonl").string();
    arguments.insert(arguments.begin(), {"train", "mlp", "--quiet", "--log", path});
    const Result result = run_program(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, testing::StartsWith("test accuracy "));
    std::vector<json> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }
  json summary_of(std::vector<std::string> arguments) const { return log_of(std::move(arguments)).back(); }
};

TEST_F(TrainProgram, WithItsDefaultsReachesNinetySevenPercentAndLogsEveryStep) {
  const std::vector<json> lines = log_of({"--device", "cpu"});
  ASSERT_EQ(lines.size(), 361u);
  for (std::size_t i = 0; i < 360; ++i) {
    EXPECT_EQ(lines[i]["event"], "step");
    EXPECT_EQ(lines[i]["step"], i + 1);
    EXPECT_EQ(lines[i]["epoch"], i / 12 + 1);
    for (const char* number : {"loss", "norm", "clip_coef", "loss_scale", "samples_per_second", "lr"}) {
      EXPECT_TRUE(lines[i][number].is_number() || lines[i]["skipped"]) << number;
    }
    EXPECT_GT(lines[i]["resident_bytes"], 0);
  }
  const json& summary = lines.back();
  EXPECT_EQ(summary["event"], "summary");
  EXPECT_GE(summary["test_accuracy"], 0.97);
  EXPECT_GT(summary["seconds"], 0.0);
  EXPECT_GT(summary["samples_per_second"], 0.0);
  EXPECT_GE(summary["peak_bytes"], lines[359]["resident_bytes"]);
  EXPECT_EQ(summary["steps"], 360);
  EXPECT_EQ(summary["parameters_digest"].get<std::string>().size(), 16u);
  EXPECT_EQ(summary["target"], cpu_targets().front());
  EXPECT_EQ(summary["settings"]["precision"], "float16");
  EXPECT_EQ(summary["settings"]["dynamic_loss_scale"], true);
}

TEST_F(TrainProgram, GivesTheSameBitsTwice) {
  const std::vector<std::string> arguments = {"--epochs", "3", "--threads", "2", "--seed", "5"};
  EXPECT_EQ(summary_of(arguments)["parameters_digest"], summary_of(arguments)["parameters_digest"]);
}

TEST_F(TrainProgram, DoesWhatItsFlagsSay) {
  const json summary = summary_of({"--micro-batch",
                                   "64",
                                   "--accum-steps",
                                   "8",
                                   "--precision",
                                   "bf16",
                                   "--optimizer",
                                   "sgd",
                                   "--lr",
                                   "0.02",
                                   "--lr-scaling",
                                   "sqrt",
                                   "--max-grad-norm",
                                   "0",
                                   "--unfused",
                                   "--norm",
                                   "layer",
                                   "--activation",
                                   "relu",
                                   "--seed",
                                   "9",
                                   "--epochs",
                                   "2",
                                   "--threads",
                                   "1",
                                   "--target",
                                   "scalar",
                                   "--loss-scale",
                                   "256"});
  EXPECT_EQ(summary["steps"], 6);  // 1437 = 2 * 512 + 413, twice
  EXPECT_EQ(summary["target"], "scalar");
  EXPECT_EQ(summary["threads"], 1);
  EXPECT_EQ(summary["loss_scale"], 256.0);
  const json expected = json::parse(R"({
    "micro_batch": 64, "accum_steps": 8, "epochs": 2, "seed": 9, "hidden": [128, 128], "activation": "relu",
    "norm": "layer", "precision": "bfloat16",
    "optimizer": {"name": "sgd", "lr": 0.02, "momentum": 0.9, "weight_decay": 0.0, "nesterov": false},
    "lr_scaling": "sqrt", "max_grad_norm": null, "dynamic_loss_scale": false, "init_loss_scale": 256.0,
    "unfused": true})");
  EXPECT_EQ(summary["settings"], expected);
}

TEST_F(TrainProgram, ScalesNoLossUnlessFloat16) {
  for (const char* precision : {"fp32", "bf16"}) {
    const json summary = summary_of({"--epochs", "1", "--precision", precision});
    EXPECT_EQ(summary["loss_scale"], 1.0) << precision;
    EXPECT_EQ(summary["settings"]["dynamic_loss_scale"], false) << precision;
  }
}

TEST_F(TrainProgram, ShowsThatAccumulatingGivesTheParametersOfALargeBatch) {
  for (const char* optimizer : {"adamw", "sgd"}) {
    const Result result = run_program({"train", "mlp", "--compare-large-batch", "--optimizer", optimizer});
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, testing::AllOf(testing::HasSubstr("4 micro-batches of 32 rows with batches of 128 rows"),
                                           testing::HasSubstr("epoch 3/3"), testing::HasSubstr("\nPASS: ")));
  }
}

// A rate at which the difference cannot stay rounding: the kinks of ReLU take care of that.
TEST_F(TrainProgram, FailsTheComparisonWhenTheParametersDiffer) {
  const Result result = run_program({"train", "mlp", "--compare-large-batch", "--quiet", "--activation", "relu",
                                     "--optimizer", "adam", "--eps", "1e-12", "--lr", "0.03", "--epochs", "10"});
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_THAT(result.out, testing::AllOf(testing::StartsWith("FAIL: "), testing::HasSubstr("--eps 1e-3")));
}

}  // namespace
}  // namespace gradfuse::cli
