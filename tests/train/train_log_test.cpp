#include <gradfuse/train/train_log.hpp>

#include "tests/error_of.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace gradfuse::train {
namespace {

using nlohmann::json;
using test::error_of;

class TrainLogTest : public testing::Test {
 protected:
  std::vector<json> lines(const std::filesystem::path& path) const {
    std::vector<json> parsed;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) parsed.push_back(json::parse(line));
    return parsed;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(TrainLogTest, WritesALineForEachStepAndTheSummaryLast) {
  const std::filesystem::path path = folder_ / "run.jsonl";
  TrainLog log(path);
  StepRecord step{.epoch = 1, .step = 2, .loss = 0.5, .lr = 0.25};
  step.report.norm = 3.0;
  log.write(step);
  EXPECT_EQ(lines(path).size(), 1u) << "a reader cannot follow";
  log.finish(MlpTrainOptions{}, TrainSummary{.steps = 2, .parameters_digest = "00ff"});
  const std::vector<json> written = lines(path);
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0]["event"], "step");
  EXPECT_EQ(written[0]["step"], 2);
  EXPECT_EQ(written[0]["loss"], 0.5);
  EXPECT_EQ(written[0]["norm"], 3.0);
  EXPECT_EQ(written[0]["clip_coef"], 1.0);
  EXPECT_EQ(written[0]["loss_scale"], 1.0);
  EXPECT_EQ(written[0]["skipped"], false);
  EXPECT_FALSE(written[0].contains("non_finite"));
  EXPECT_EQ(written[1]["event"], "summary");
  EXPECT_EQ(written[1]["parameters_digest"], "00ff");
  EXPECT_EQ(written[1]["settings"]["optimizer"]["name"], "adamw");
  EXPECT_EQ(written[1]["settings"]["precision"], "float16");
}

TEST_F(TrainLogTest, NamesTheTensorOfASkippedStepAndWritesNullForWhatIsNotFinite) {
  const std::filesystem::path path = folder_ / "run.jsonl";
  TrainLog log(path);
  StepRecord step{.loss = std::numeric_limits<double>::quiet_NaN()};
  step.report.outcome = StepOutcome::kNonFinite;
  step.report.norm = std::numeric_limits<double>::infinity();
  step.report.non_finite = NonFinite{.micro_batch = 3, .tensor = 0};
  step.non_finite_tensor = "layer0.weight";
  log.write(step);
  const std::vector<json> written = lines(path);
  ASSERT_EQ(written.size(), 1u);
  EXPECT_TRUE(written[0]["skipped"]);
  EXPECT_TRUE(written[0]["loss"].is_null());
  EXPECT_TRUE(written[0]["norm"].is_null());
  EXPECT_EQ(written[0]["non_finite"], (json{{"micro_batch", 3}, {"tensor", "layer0.weight"}}));
}

TEST_F(TrainLogTest, ReplacesWhatTheFileHeld) {
  const std::filesystem::path path = folder_ / "run.jsonl";
  std::ofstream(path) << "old\n";
  TrainLog(path).write(StepRecord{});
  EXPECT_EQ(lines(path).size(), 1u);
}

TEST_F(TrainLogTest, TellsPathAndReasonWhenTheDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  TrainLog log("/dev/full");
  const auto says = testing::AllOf(testing::HasSubstr("/dev/full"), testing::HasSubstr("No space left"));
  EXPECT_THAT(error_of([&] { log.write(StepRecord{}); }), says);
  EXPECT_THAT(error_of([&] { log.finish(MlpTrainOptions{}, TrainSummary{}); }), says);
}

TEST_F(TrainLogTest, TellsPathAndReasonWhenTheFileCannotBeOpened) {
  EXPECT_THAT(error_of([&] { TrainLog(folder_ / "missing" / "run.jsonl"); }),
              testing::AllOf(testing::HasSubstr("missing/run.jsonl"), testing::HasSubstr("No such file")));
  EXPECT_THAT(error_of([&] { TrainLog{folder_.path()}; }), testing::HasSubstr("directory"));
}

TEST_F(TrainLogTest, TakesNothingAfterTheSummary) {
  TrainLog log(folder_ / "run.jsonl");
  log.finish(MlpTrainOptions{}, TrainSummary{});
  EXPECT_THAT(error_of([&] { log.write(StepRecord{}); }), testing::HasSubstr("finished already"));
}

}  // namespace
}  // namespace gradfuse::train
