#include <gradfuse/train/train_log.hpp>

#include <fmt/format.h>
#include <gradfuse/error.hpp>

#include "src/train/train_json.hpp"

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

namespace gradfuse::train {

// C streams: they say why they failed.
struct TrainLog::File {
  explicit File(std::filesystem::path path_) : path(std::move(path_)), stream(std::fopen(path.c_str(), "w")) {
    if (stream == nullptr) fail("opened");
  }
  ~File() {
    if (stream != nullptr) std::fclose(stream);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  [[noreturn]] void fail(const char* what) const {
    const std::string reason = std::generic_category().message(errno);
    throw Error(fmt::format("log file {} cannot be {}: {}", path.string(), what, reason));
  }

  void write_line(const std::string& json) {
    if (stream == nullptr) throw Error(fmt::format("log file {} is finished already", path.string()));
    if (std::fputs((json + "\n").c_str(), stream) == EOF || std::fflush(stream) != 0) fail("written");
  }

  void close() {
    if (std::fclose(std::exchange(stream, nullptr)) != 0) fail("closed");
  }

  std::filesystem::path path;
  std::FILE* stream;
};

TrainLog::TrainLog(std::filesystem::path path) : file_(std::make_unique<File>(std::move(path))) {}
TrainLog::TrainLog(TrainLog&&) noexcept = default;
TrainLog& TrainLog::operator=(TrainLog&&) noexcept = default;
TrainLog::~TrainLog() = default;

void TrainLog::write(const StepRecord& record) { file_->write_line(to_json(record)); }

void TrainLog::finish(const MlpTrainOptions& options, const TrainSummary& summary) {
  file_->write_line(to_json(options, summary));
  file_->close();
}

void TrainLog::finish(const TransformerTrainOptions& options, const TransformerTrainSummary& summary) {
  file_->write_line(to_json(options, summary));
  file_->close();
}

}  // namespace gradfuse::train
