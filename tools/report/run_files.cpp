// SPDX-License-Identifier: Apache-2.0
// Makes step records of the tables in a run folder.
#include "tools/report/run_files.hpp"

#include "actors/recording/evaluation_file.hpp"
#include "actors/recording/input_file.hpp"
#include "actors/recording/ledger_file.hpp"
#include "actors/recording/metrics_file.hpp"
#include "actors/recording/notice_file.hpp"
#include "tools/options/option_value.hpp"
#include "tools/run/run_directory.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <span>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

/// Reads the lines of a file, a block at a time. A last line without an end was cut off and does
/// not count.
class line_reader {
public:
  static constexpr size_t block_bytes = size_t{1} << 20;

  explicit line_reader(input_file file) : file_(std::move(file)) {}

  /// The next line, without its end; nothing after the last. It holds until the next call.
  [[nodiscard]] expected<std::optional<std::string_view>> next() {
    auto end = text_.find('\n', used_);
    while (end == std::string::npos && read_ < file_.bytes()) {
      text_.erase(0, std::exchange(used_, 0));
      auto searched = text_.size();
      auto count = std::min<uint64_t>(block_bytes, file_.bytes() - read_);
      text_.resize(searched + count);
      auto target = std::as_writable_bytes(std::span{text_}).subspan(searched);
      if (auto done = file_.read_at(read_, target); !done)
        return tl::unexpected<error>(done.error());
      read_ += count;
      end = text_.find('\n', searched);
    }
    if (end == std::string::npos) return std::nullopt;
    auto line = std::string_view{text_}.substr(used_, end - used_);
    used_ = end + 1;
    ++number_;
    return line;
  }

  /// Whether bytes follow the last line end.
  [[nodiscard]] bool has_rest() const { return used_ < text_.size(); }

  /// The error of the line that was read last. @param message "not a line of a ledger".
  [[nodiscard]] tl::unexpected<error> malformed(std::string_view message) const {
    return fail(errc::malformed, fmt::format("{}:{}: {}", file_.name(), number_, message));
  }

private:
  input_file file_;
  std::string text_;  // The last bytes that were read.
  size_t used_ = 0;   // Bytes of `text_` that lines have used up.
  uint64_t read_ = 0; // Bytes of the file that were read.
  uint64_t number_ = 0;
};

/// A table of the run folder, after its header; nothing if there is no such file.
expected<std::optional<line_reader>> open_table(const std::filesystem::path& path,
                                                std::string_view header) {
  auto file = input_file::open(path);
  if (!file && file.error().code == errc::not_found) return std::nullopt;
  if (!file) return tl::unexpected<error>(file.error());
  line_reader lines{std::move(*file)};
  auto first = lines.next();
  if (!first) return tl::unexpected<error>(first.error());
  header.remove_suffix(1); // its line end
  if (*first && **first != header)
    return lines.malformed(fmt::format("another first line than '{}' as every run has it", header));
  return lines;
}

// The fields of a line; a missing one is empty. No field of these tables is in quotes.
template <size_t Count>
std::array<std::string_view, Count> fields_of(std::string_view line) {
  std::array<std::string_view, Count> fields;
  for (auto& field : fields) {
    field = line.substr(0, line.find(','));
    line.remove_prefix(std::min(field.size() + 1, line.size()));
  }
  return fields;
}

/// A step's columns in metrics.csv that the ledger does not have.
struct metrics_line {
  uint64_t step = 0;
  job_time began{0};
  job_time ended{0};
  job_time apply{0};
  uint32_t live = 0;
  uint32_t needed = 0;
};

constexpr double seconds_max = 1e9; // as in a ledger

std::optional<metrics_line> metrics_line_of(std::string_view line) {
  auto fields = fields_of<11>(line);
  auto step = number_of<uint64_t>(fields[0]);
  auto ended = number_of<double>(fields[1]);
  auto live = number_of<uint32_t>(fields[7]);
  auto needed = number_of<uint32_t>(fields[8]);
  auto took = number_of<double>(fields[9]);
  auto apply = number_of<double>(fields[10]);
  if (!step || !ended || !live || !needed || !took || !apply) return std::nullopt;
  auto is_time = [](double seconds) { return std::abs(seconds) < seconds_max; }; // false for NaN
  if (!is_time(*ended) || !is_time(*took) || !is_time(*apply)) return std::nullopt;
  auto time = [](double seconds) {
    return std::chrono::round<job_time>(std::chrono::duration<double>{seconds});
  };
  return metrics_line{*step, time(*ended - *took), time(*ended), time(*apply), *live, *needed};
}

/// Reads the steps of a ledger, with the columns that metrics.csv adds.
class step_reader {
public:
  step_reader(line_reader ledger, std::optional<line_reader> metrics, run_view& view)
    : ledger_(std::move(ledger)), metrics_(std::move(metrics)), view_(view) {}

  expected<void> read() {
    while (true) {
      auto text = ledger_.next();
      if (!text) return tl::unexpected<error>(text.error());
      if (!*text && ledger_.has_rest()) return {}; // the last step is not whole
      if (!*text) return finish_step();
      auto line = read_ledger_line(**text);
      if (!line || line->step < step_.step) return ledger_.malformed("not a line of a ledger");
      if (line->step > step_.step)
        if (auto done = finish_step(); !done) return done;
      step_.step = line->step;
      add(*line);
    }
  }

  [[nodiscard]] bool is_cut() const { return ledger_.has_rest(); }

  /// The last step of any file. @pre The ledger was read.
  expected<uint64_t> last_step() {
    auto last = std::max(last_, metrics_line_ ? metrics_line_->step : 0);
    while (metrics_) {
      auto text = metrics_->next();
      if (!text) return tl::unexpected<error>(text.error());
      if (!*text) break;
      last = std::max(last, number_of<uint64_t>(fields_of<1>(**text)[0]).value_or(0));
    }
    return last;
  }

private:
  void add(const ledger_line& line) {
    switch (line.verdict) {
    case gradient_verdict::accepted:
      step_.accepted.push_back(line.gradient);
      step_.ended = line.gradient.arrived + line.idle;
      step_.apply = line.idle; // of the last that came
      break;
    case gradient_verdict::stale:
      step_.stale.push_back(line.gradient);
      break;
    case gradient_verdict::cancelled:
      step_.cancelled.push_back(line.gradient);
      break;
    }
  }

  // The times in metrics.csv are those of the chief's clock; a ledger also has times of other
  // machines' clocks. A step without an accepted gradient is whole only if metrics.csv has it.
  expected<void> finish_step() {
    auto step = std::exchange(step_, {});
    if (step.step == 0) return {};
    auto metrics = metrics_of(step.step);
    if (!metrics) return tl::unexpected<error>(metrics.error());
    if (!*metrics && step.accepted.empty()) return {};
    if (*metrics) {
      step.began = (*metrics)->began;
      step.ended = (*metrics)->ended;
      step.apply = (*metrics)->apply;
      live_ = (*metrics)->live;
      needed_ = (*metrics)->needed;
    } else {
      step.began = ended_;
    }
    step.live = live_;
    step.needed = needed_ > 0 ? needed_ : static_cast<uint32_t>(step.accepted.size());
    ended_ = step.ended;
    last_ = step.step;
    view_.add(step);
    return {};
  }

  // Adds a step between two others that has no line in the ledger: no gradient came.
  void add_empty(const metrics_line& step) {
    if (last_ == 0 || step.step <= last_) return;
    view_.add({.step = step.step,
               .began = step.began,
               .ended = step.ended,
               .needed = step.needed,
               .live = step.live});
  }

  expected<std::optional<metrics_line>> metrics_of(uint64_t step) {
    while (metrics_ && (!metrics_line_ || metrics_line_->step < step)) {
      if (metrics_line_) add_empty(*metrics_line_);
      auto text = metrics_->next();
      if (!text) return tl::unexpected<error>(text.error());
      if (!*text) return std::nullopt;
      metrics_line_ = metrics_line_of(**text);
      if (!metrics_line_) return metrics_->malformed("not a line about a step");
    }
    if (!metrics_line_ || metrics_line_->step != step) return std::nullopt;
    return metrics_line_;
  }

  line_reader ledger_;
  std::optional<line_reader> metrics_;
  run_view& view_;
  step_record step_;
  std::optional<metrics_line> metrics_line_;
  uint64_t last_ = 0; ///< The step that was added last.
  job_time ended_{0}; ///< Its end.
  uint32_t live_ = 0;
  uint32_t needed_ = 0;
};

expected<void> read_steps(const run_directory& run, run_files& files) {
  auto ledger_path = run.ledger();
  auto ledger = open_table(ledger_path, ledger_file::header);
  if (!ledger) return tl::unexpected<error>(ledger.error());
  if (!*ledger)
    return fail(errc::not_found,
                fmt::format("not the folder of a run: there is no {}", ledger_path.native()));
  auto metrics = open_table(run.metrics(), metrics_file::header);
  if (!metrics) return tl::unexpected<error>(metrics.error());
  step_reader steps{std::move(**ledger), std::move(*metrics), files.view};
  if (auto done = steps.read(); !done) return done;
  files.is_cut = steps.is_cut();
  auto last = steps.last_step();
  if (!last) return tl::unexpected<error>(last.error());
  files.last_step = *last;
  if (files.view.step_count() > 0) return {};
  if (files.last_step > 0)
    return fail(errc::failed_precondition,
                fmt::format("{} holds no step, though metrics.csv does: a report is made from a "
                            "ledger; give the run more --ledger-bytes",
                            ledger_path.native()));
  return fail(errc::failed_precondition,
              fmt::format("{}: the run has made no step", ledger_path.native()));
}

// The header names the measure.
expected<void> read_evaluations(const std::filesystem::path& path, run_files& files) {
  auto file = input_file::open(path);
  if (!file && file.error().code == errc::not_found) return {};
  if (!file) return tl::unexpected<error>(file.error());
  line_reader lines{std::move(*file)};
  auto text = lines.next();
  if (!text) return tl::unexpected<error>(text.error());
  if (!*text) return {};
  files.measure = std::string{fields_of<3>(**text)[2]};
  if (evaluation_file::header(files.measure) != fmt::format("{}\n", **text))
    return lines.malformed("not the first line of a table of evaluations");
  for (text = lines.next(); text && *text; text = lines.next()) {
    auto fields = fields_of<3>(**text);
    auto step = number_of<uint64_t>(fields[0]);
    auto value = number_of<double>(fields[2]);
    if (!step || (!value && !fields[2].empty()))
      return lines.malformed("not a line about an evaluation");
    if (value) files.view.add_evaluation(*step, *value);
  }
  return text ? expected<void>{} : tl::unexpected<error>(text.error());
}

expected<void> read_notices(const std::filesystem::path& path, run_files& files) {
  auto lines = open_table(path, notice_file::header);
  if (!lines) return tl::unexpected<error>(lines.error());
  while (*lines) {
    auto text = (*lines)->next();
    if (!text) return tl::unexpected<error>(text.error());
    if (!*text) break;
    auto line = read_notice_line(**text);
    if (!line) return (*lines)->malformed("not a line about a notice");
    files.view.add_notice({line->step, std::move(line->text)});
  }
  return {};
}

} // namespace

expected<run_files> read_run_files(const std::filesystem::path& folder) {
  const auto run = run_directory::at(folder);
  run_files files;
  auto done = read_steps(run, files);
  if (done) done = read_evaluations(run.evaluations(), files);
  if (done) done = read_notices(run.notices(), files);
  if (!done) return tl::unexpected<error>(done.error());
  files.is_over = run_directory::is_over(folder);
  return files;
}

} // namespace troupe
