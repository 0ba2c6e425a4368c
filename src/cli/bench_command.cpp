#include "src/cli/bench_command.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <gradfuse/error.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "src/cli/backend_flags.hpp"
#include "src/cli/exit_codes.hpp"
#include "src/workload/suite.hpp"

namespace gradfuse::cli {
namespace {

using workload::BandwidthMeter;
using workload::PassResult;
using workload::Stream;
using workload::SuiteResult;
using workload::WindowResult;

struct BenchOptions {
  BackendFlags backend;
  double seconds = 30.0;
  std::string json_path;
};

/// One line of the table; what was not measured is 0.
struct Row {
  std::string name;
  std::size_t parameters, tensors;
  DType grad_dtype;
  std::size_t micro_batches;
  double seconds, unfused_seconds, bandwidth;
  std::size_t bytes_per_parameter;
  std::string why_skipped;
};

std::vector<Row> rows_of(const SuiteResult& result) {
  std::vector<Row> rows;
  for (const WindowResult& w : result.windows) {
    rows.push_back({"window, " + w.tensor_list, w.parameters, w.tensors, w.grad_dtype, w.micro_batches, w.fused_seconds,
                    w.unfused_seconds, w.bandwidth, w.fused_bytes_per_parameter, w.why_skipped});
  }
  for (const PassResult& p : result.passes) {
    rows.push_back({p.name + " alone", p.parameters, p.tensors, p.grad_dtype, 0, p.seconds, 0.0, p.bandwidth,
                    p.bytes_per_parameter, p.why_skipped});
  }
  return rows;
}

/// "-" for what a row does not have.
std::string cell(double value, int decimals) { return value > 0.0 ? fmt::format("{:.{}f}", value, decimals) : "-"; }

std::string format_row(const Row& row) {
  std::string line =
      fmt::format("{:<20} {:>10} {:>7} {:<8} {:>3}", row.name, row.parameters, row.tensors, dtype_name(row.grad_dtype),
                  row.micro_batches == 0 ? "-" : std::to_string(row.micro_batches));
  if (!row.why_skipped.empty()) return line + "  skipped: " + row.why_skipped;
  const double num_bytes = static_cast<double>(row.parameters * row.bytes_per_parameter);
  const double rate = num_bytes / row.seconds;
  return line + fmt::format(" {:>9} {:>10} {:>6} {:>6} {:>7} {:>5.0f} % {:>10}", cell(row.seconds * 1e3, 2),
                            cell(row.unfused_seconds * 1e3, 2), cell(row.unfused_seconds / row.seconds, 2),
                            cell(rate * 1e-9, 1), cell(row.bandwidth * 1e-9, 1), 100.0 * rate / row.bandwidth,
                            cell(row.bandwidth / rate, 2));
}

void print_bandwidth(const std::string& name, const BandwidthMeter& meter) {
  fmt::print("{}; memory bandwidth {:.1f} GB/s, the best of what follows but updates in place:\n", name,
             meter.bound() * 1e-9);
  for (const Stream stream : meter.streams()) {
    fmt::print("  {:<17} {:>6.1f} GB/s\n", workload::stream_name(stream), meter.fastest(stream) * 1e-9);
  }
}

void print_table(const SuiteResult& result) {
  fmt::print("\n{:<20} {:>10} {:>7} {:<8} {:>3} {:>9} {:>10} {:>6} {:>6} {:>7} {:>7} {:>10}\n", "case", "parameters",
             "tensors", "dtype", "N", "fused ms", "unfused ms", "ratio", "GB/s", "of GB/s", "share", "time/bound");
  for (const Row& row : rows_of(result)) fmt::print("{}\n", format_row(row));
  fmt::print(
      "\nN: micro-batches. ratio: unfused / fused time. GB/s, share and time / bound are the fused window's, against "
      "the\n"
      "bandwidth (of GB/s) that was measured between its own rounds, as a shared machine's changes from case to case.\n"
      "A share above 100 %: the case fits into the caches, or works in place (update), which this machine does faster\n"
      "than read, copy and triad.\n");
}

/// What it costs to have many tensors: each list against one tensor of the same size.
void print_cost_of_many(const SuiteResult& result) {
  for (const WindowResult& many : result.windows) {
    for (const WindowResult& one : result.windows) {
      const bool is_comparable = many.tensors > 1 && one.tensors == 1 && many.parameters == one.parameters &&
                                 many.grad_dtype == one.grad_dtype && many.micro_batches == one.micro_batches;
      if (!is_comparable || !many.why_skipped.empty() || !one.why_skipped.empty()) continue;
      fmt::print("{} takes {:.2f} x the time of one tensor of {}.\n", many.tensor_list,
                 many.fused_seconds / one.fused_seconds, one.parameters);
    }
  }
}

nlohmann::json window_json(const WindowResult& w) {
  nlohmann::json entry{{"name", "window"},
                       {"tensor_list", w.tensor_list},
                       {"parameters", w.parameters},
                       {"tensors", w.tensors},
                       {"grad_dtype", dtype_name(w.grad_dtype)},
                       {"micro_batches", w.micro_batches},
                       {"fused_bytes_per_parameter", w.fused_bytes_per_parameter},
                       {"unfused_bytes_per_parameter", w.unfused_bytes_per_parameter}};
  if (w.why_skipped.empty()) {
    entry["fused_seconds"] = w.fused_seconds;
    entry["unfused_seconds"] = w.unfused_seconds;
    entry["bandwidth_bytes_per_second"] = w.bandwidth;
  } else {
    entry["skipped"] = w.why_skipped;
  }
  return entry;
}

nlohmann::json pass_json(const PassResult& p) {
  nlohmann::json entry{{"name", p.name},
                       {"parameters", p.parameters},
                       {"tensors", p.tensors},
                       {"grad_dtype", dtype_name(p.grad_dtype)},
                       {"bytes_per_parameter", p.bytes_per_parameter}};
  if (p.why_skipped.empty()) {
    entry["seconds"] = p.seconds;
    entry["bandwidth_bytes_per_second"] = p.bandwidth;
  } else {
    entry["skipped"] = p.why_skipped;
  }
  return entry;
}

/// `cases` and `passes` hold what was measured, `skipped` what was not.
nlohmann::json to_json(const SuiteResult& result, const BackendInfo& info, const BandwidthMeter& meter) {
  nlohmann::json json{{"bandwidth_bytes_per_second", meter.bound()},
                      {"backend", info.name},
                      {"threads", info.threads},
                      {"target", info.target},
                      {"device", info.device},
                      {"cases", nlohmann::json::array()},
                      {"passes", nlohmann::json::array()},
                      {"skipped", nlohmann::json::array()}};
  for (const Stream stream : meter.streams()) json["streams"][workload::stream_name(stream)] = meter.fastest(stream);
  for (const WindowResult& w : result.windows) {
    json[w.why_skipped.empty() ? "cases" : "skipped"].push_back(window_json(w));
  }
  for (const PassResult& p : result.passes) {
    json[p.why_skipped.empty() ? "passes" : "skipped"].push_back(pass_json(p));
  }
  return json;
}

/// Before measuring, so that a bad path costs no minute; what the file holds stays until there is something new.
void check_json_path(const std::string& path) {
  if (!path.empty() && !std::ofstream(path, std::ios::app)) {
    throw Error(fmt::format("cannot open \"{}\" for writing; choose another --json file", path));
  }
}

void write_json(const std::string& path, const nlohmann::json& json) {
  std::ofstream file(path);
  file << json.dump(2) << '\n';
  file.close();
  if (!file) throw Error(fmt::format("cannot write the results to \"{}\"; is the disk full?", path));
}

void check_seconds(double seconds) {
  if (seconds > 0.0 && seconds <= 3600.0) return;
  throw Error(fmt::format("--seconds is {}; give a number above 0, up to 3600", seconds));
}

void run_bench(const BenchOptions& options) {
  check_command_line([&] { check_seconds(options.seconds); });
  const auto backend = check_command_line([&] { return backend_of(options.backend); });
  const BackendInfo info = describe(*backend);
  check_json_path(options.json_path);
  BandwidthMeter meter(backend);
  const SuiteResult result =
      workload::run_suite({.backend = backend, .seconds = options.seconds}, meter,
                          [](const std::string& next) { fmt::print(stderr, "measuring: {}\n", next); });
  print_bandwidth(describe_backend(*backend), meter);
  print_table(result);
  print_cost_of_many(result);
  if (!options.json_path.empty()) write_json(options.json_path, to_json(result, info, meter));
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "bench", "Time fused windows against unfused ones, beside the memory bandwidth of this machine (under a minute)");
  const auto options = std::make_shared<BenchOptions>();
  add_device_flag(*command, options->backend);
  add_backend_flags(*command, options->backend);
  command->add_option("--seconds", options->seconds, "Time to measure for; up to 3600")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->group("Run");
  command->add_option("--json", options->json_path, "Write the figures to this file, too")
      ->type_name("FILE")
      ->group("Run");
  command->callback([options] { run_bench(*options); });
}

}  // namespace gradfuse::cli
