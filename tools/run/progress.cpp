// SPDX-License-Identifier: Apache-2.0
// Composes the progress line.
#include "tools/run/progress.hpp"

#include "actors/recording/readable.hpp"
#include "actors/recording/seconds.hpp"

#include <cmath>
#include <fmt/format.h>

namespace troupe {

namespace {

using namespace std::chrono_literals;

constexpr job_time terminal_interval = 100ms;
constexpr job_time plain_interval = 5s;
constexpr job_time measured_interval = 2500ms; // of a speed, at least, and at most twice as much
constexpr uint64_t plain_lines = 10;           // of a quick run

constexpr std::string_view clear_line = "\r\x1b[K";

bool is_last(const progress_sample& sample) {
  return sample.step_count > 0 && sample.step >= sample.step_count;
}

// Whether the trainer reports losses and examples: a NaN is shown if there are examples.
bool has_reports(const progress_sample& sample) {
  return !std::isnan(sample.loss) || sample.examples_per_second != 0;
}

// The parts of the line, in order.
enum piece : size_t { position, loss, speed, replicas, dropped, time_left };

// The pieces that are left out when the window is narrow, the first one first.
constexpr piece expendable[] = {time_left, speed, dropped, replicas};

std::string position_text(const progress_sample& sample) {
  if (sample.step_count == 0) return fmt::format("step {}", readable::count(sample.step));
  const auto total = readable::count(sample.step_count);
  return fmt::format("step {:>{}}/{}", readable::count(sample.step), total.size(), total);
}

std::string joined_by_blanks(const std::vector<std::string>& pieces) {
  std::string text;
  for (const auto& piece : pieces) {
    if (!text.empty() && !piece.empty()) text += "  ";
    text += piece;
  }
  return text;
}

std::string fitted(std::vector<std::string> pieces, size_t width) {
  auto text = joined_by_blanks(pieces);
  for (auto dropped_piece : expendable) {
    if (text.size() <= width) break;
    pieces[dropped_piece].clear();
    text = joined_by_blanks(pieces);
  }
  return text.substr(0, width);
}

} // namespace

std::string progress::update(const progress_sample& sample, job_time now) {
  if (!is_due(sample, now)) return {};
  const shown here{sample.step, now, sample.examples};
  if (!first_) first_ = before_ = next_before_ = here;
  last_ = here;
  measure_from(here);
  const auto all = pieces(sample, now);
  if (!options_.terminal) return joined_by_blanks(all) + "\n";
  // The last column stays free: some terminals wrap as soon as it is filled.
  open_line_ = fitted(all, options_.width - std::min<size_t>(options_.width, 1));
  return fmt::format("{}{}", clear_line, open_line_);
}

std::string progress::message(std::string_view line) {
  if (open_line_.empty()) return fmt::format("{}\n", line);
  return fmt::format("{}{}\n{}", clear_line, line, open_line_);
}

std::string progress::finish() {
  if (open_line_.empty()) return {};
  open_line_.clear();
  return "\n";
}

bool progress::is_due(const progress_sample& sample, job_time now) const {
  if (!first_) return true;
  if (is_last(sample)) return sample.step != last_.step;
  const job_time since = now - last_.when;
  if (options_.terminal) return since >= terminal_interval;
  const bool tenth = sample.step_count > 0
                     && sample.step * plain_lines / sample.step_count
                          > last_.step * plain_lines / sample.step_count;
  return tenth || since >= plain_interval;
}

std::vector<std::string> progress::pieces(const progress_sample& sample, job_time now) const {
  std::vector<std::string> all(time_left + 1);
  const auto* blank = options_.loss_unit.empty() ? "" : " ";
  all[position] = position_text(sample);
  if (has_reports(sample)) {
    all[loss]
      = fmt::format("loss {}{}{}", readable::quantity(sample.loss), blank, options_.loss_unit);
    all[speed] = fmt::format("{} examples/s", readable::quantity(examples_per_second(sample, now)));
  }
  all[replicas] = fmt::format("live {}/{}", sample.live, sample.needed);
  all[dropped] = fmt::format("{} dropped", readable::count(sample.dropped));
  all[time_left] = remaining(sample, now);
  return all;
}

// Steps of one run differ a hundredfold in their time, where one waits for a slow replica: one of
// them says little.
void progress::measure_from(const shown& here) {
  if (here.when - next_before_.when < measured_interval) return;
  before_ = next_before_;
  next_before_ = here;
}

double progress::examples_per_second(const progress_sample& sample, job_time now) const {
  if (now <= before_.when) return sample.examples_per_second;
  return static_cast<double>(sample.examples - before_.examples) / seconds(now - before_.when);
}

std::string progress::remaining(const progress_sample& sample, job_time now) const {
  if (is_last(sample)) return readable::clock(now) + " in all";
  if (sample.step_count == 0 || sample.step <= first_->step) return {};
  const double share = static_cast<double>(sample.step_count - sample.step)
                       / static_cast<double>(sample.step - first_->step);
  const auto left = std::chrono::duration<double, std::nano>(now - first_->when) * share;
  if (left > job_time::max() / 2) return {};
  return readable::clock(std::chrono::duration_cast<job_time>(left)) + " left";
}

} // namespace troupe
