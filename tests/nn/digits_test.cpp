#include "tests/error_of.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gradfuse/error.hpp>
#include <gradfuse/nn/digits.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace gradfuse::nn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// 65 fields without a line end: pixels (label + i) % 17, then the label.
std::string row(unsigned label) {
  std::string line;
  for (unsigned i = 0; i < 64; ++i) line += std::to_string((label + i) % 17) + ',';
  return line + std::to_string(label);
}

std::string rows(unsigned num_rows, const std::string& line_end = "\n") {
  std::string text;
  for (unsigned r = 0; r < num_rows; ++r) text += row(r % 10) + line_end;
  return text;
}

LabelledRows load(const std::string& contents) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "digits.csv", std::ios::binary) << contents;
  return load_digits(folder / "digits.csv");
}

/// The message, after a look that it names the file.
std::string refusal(const std::string& contents) {
  std::string message = test::error_of([&] { load(contents); });
  EXPECT_THAT(message, HasSubstr("/digits.csv:"));
  return message;
}

/// Twelve rows, of which the fifth has `field` in place of its field number `index`, counted from 0.
std::string with_field(std::size_t index, const std::string& field) {
  std::string text = rows(4);
  for (std::size_t i = 0; i < 65; ++i) text += (i == index ? field : "1") + (i < 64 ? "," : "\n");
  return text + rows(7);
}

TEST(Digits, OfTheRepositoryAre1797RowsOfPixelsBetweenZeroAndOne) {
  const LabelledRows digits = load_digits(GRADFUSE_DATA_DIR "/digits.csv");
  ASSERT_EQ(digits.num_rows(), 1797u);
  ASSERT_EQ(digits.features.size(), 1797u * 64u);
  for (const float feature : digits.features) ASSERT_TRUE(feature >= 0.0f && feature <= 1.0f);
  EXPECT_EQ(digits.features[2], 5.0f / 16.0f);  // the file begins 0,0,5,13
  EXPECT_EQ(digits.features[3], 13.0f / 16.0f);
  std::vector<int> counts(10);
  for (const std::int32_t label : digits.labels) ++counts.at(static_cast<std::size_t>(label));
  EXPECT_THAT(counts, testing::ElementsAre(178, 182, 177, 183, 181, 182, 181, 179, 174, 180));  // as UCI lists them
}

TEST(DigitsSplit, GivesEachRowOnceToTrainOrTest) {
  const LabelledRows digits = load_digits(GRADFUSE_DATA_DIR "/digits.csv");
  const DigitsSplit split = split_digits(digits, 0);
  EXPECT_EQ(split.train.num_rows(), 1437u);
  EXPECT_EQ(split.test.num_rows(), 360u);
  const auto sorted = [](std::initializer_list<const LabelledRows*> parts) {
    std::vector<std::vector<float>> all;
    for (const LabelledRows* part : parts) {
      for (std::size_t r = 0; r < part->num_rows(); ++r) {
        const auto begin = part->features.begin() + static_cast<std::ptrdiff_t>(r * 64);
        all.emplace_back(begin, begin + 64).push_back(static_cast<float>(part->labels[r]));
      }
    }
    std::ranges::sort(all);
    return all;
  };
  EXPECT_EQ(sorted({&split.train, &split.test}), sorted({&digits}));
}

TEST(DigitsSplit, DependsOnTheSeedAlone) {
  const LabelledRows digits = load_digits(GRADFUSE_DATA_DIR "/digits.csv");
  const DigitsSplit split = split_digits(digits, 4), same = split_digits(digits, 4), other = split_digits(digits, 5);
  EXPECT_EQ(split.train.features, same.train.features);
  EXPECT_EQ(split.test.labels, same.test.labels);
  EXPECT_NE(split.test.labels, other.test.labels);
  // As an independent mt19937_64 in Python shuffles them; a change here would move every published accuracy.
  EXPECT_THAT(std::vector<std::int32_t>(split.test.labels.begin(), split.test.labels.begin() + 8),
              testing::ElementsAre(6, 6, 3, 2, 0, 7, 2, 8));
}

TEST(DigitsSplit, RefusesFeaturesThatDoNotFitTheLabels) {
  EXPECT_THROW(split_digits({std::vector<float>(63), {1}}, 0), Error);
}

TEST(DigitsFile, MayEndItsLinesWithCrLfAndLackTheLastEnd) {
  const LabelledRows plain = load(rows(12));
  EXPECT_EQ(load(rows(12, "\r\n")).features, plain.features);
  EXPECT_EQ(load(rows(11) + row(1)).labels, plain.labels);
  EXPECT_EQ(load(rows(11, "\r\n") + row(1)).features, plain.features);
}

TEST(DigitsFile, MustBeAReadableRegularFile) {
  EXPECT_THROW(load_digits("/nowhere/digits.csv"), Error);
  EXPECT_THROW(load_digits(testing::TempDir()), Error);
  EXPECT_THROW(load_digits("/dev/zero"), Error);
  EXPECT_THROW(load_digits(""), Error);
}

TEST(DigitsFile, MustHaveTenRows) {
  EXPECT_THAT(refusal(""), HasSubstr("digits.csv: the file is empty; expected the digits as CSV"));
  EXPECT_THAT(refusal(rows(9)), HasSubstr(":9: the file ends after 9 rows; expected 10"));
  EXPECT_EQ(load(rows(10)).num_rows(), 10u);
}

TEST(DigitsFile, MustHave65FieldsOnEachLine) {
  EXPECT_THAT(refusal(rows(11) + row(1).substr(0, 40)), AllOf(HasSubstr(":12: "), HasSubstr("cut off")));
  EXPECT_THAT(refusal(rows(11) + row(1) + ",3\n"), HasSubstr(":12: 66 fields"));
  EXPECT_THAT(refusal(rows(3) + "\n" + rows(9)), HasSubstr(":4: 0 fields"));
  EXPECT_THAT(refusal("a,b,c\n" + rows(12)), HasSubstr(":1: 3 fields"));
}

TEST(DigitsFile, MustHoldIntegers) {
  for (const std::string field : {"", " 1", "1 ", "+1", "-1", "1.5", "1e0", "0x1", "one", "nan"}) {
    EXPECT_THAT(refusal(with_field(7, field)), AllOf(HasSubstr(":5: field 8 is \"" + field), HasSubstr("integer")));
  }
}

TEST(DigitsFile, MustHoldPixelsTo16AndLabelsTo9) {
  EXPECT_THAT(refusal(with_field(0, "17")), AllOf(HasSubstr(":5: pixel, field 1 is \"17\""), HasSubstr("0..16")));
  EXPECT_THAT(refusal(with_field(64, "10")), AllOf(HasSubstr(":5: label, field 65 is \"10\""), HasSubstr("0..9")));
  EXPECT_THAT(refusal(with_field(3, "99999999999999999999")), HasSubstr(":5: pixel, field 4"));
}

TEST(DigitsFile, OfBinaryJunkIsRefusedInPrintableWords) {
  const std::string junk = with_field(2, std::string("\0\xff\x1b[31m", 7) + std::string(1000, '\x01'));
  const std::string message = refusal(junk);
  EXPECT_THAT(message, HasSubstr(":5: field 3 is \"???[31m"));
  EXPECT_LT(message.size(), 300u);
  EXPECT_TRUE(std::ranges::all_of(message, [](char c) { return c >= ' ' && c <= '~'; })) << message;
}

}  // namespace
}  // namespace gradfuse::nn
