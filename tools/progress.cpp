// SPDX-License-Identifier: Apache-2.0
// Composing the progress line.
#include "tools/progress.hpp"

#include "actors/recording/readable.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

using namespace std::chrono_literals;

constexpr job_time terminal_interval = 100ms;
constexpr job_time plain_interval = 5s;
constexpr uint64_t plain_lines = 10; // That a run is divided into, if it is quick.

constexpr std::string_view clear_line = "\r\x1b[K";

bool is_last(const progress_sample& sample) {
  return sample.step_count > 0 && sample.step >= sample.step_count;
}

std::string position(const progress_sample& sample) {
  if (sample.step_count == 0) return fmt::format("step {}", readable::count(sample.step));
  const auto total = readable::count(sample.step_count);
  return fmt::format("{:>3} %  step {:>{}}/{}", 100 * sample.step / sample.step_count,
                     readable::count(sample.step), total.size(), total);
}

} // namespace

std::string progress::update(const progress_sample& sample, job_time now) {
  if (!is_due(sample, now)) return {};
  if (!first_) first_ = shown{sample.step, now};
  last_ = {sample.step, now};
  auto text = line(sample, now);
  if (!options_.terminal) return text + "\n";
  // The last column stays free: some terminals wrap as soon as it is filled.
  text.resize(std::min(text.size(), options_.width - std::min<size_t>(options_.width, 1)));
  open_line_ = std::move(text);
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

std::string progress::line(const progress_sample& sample, job_time now) const {
  auto text = position(sample);
  text += fmt::format("  loss {}", readable::quantity(sample.loss));
  if (!options_.loss_unit.empty()) text += fmt::format(" {}", options_.loss_unit);
  text += fmt::format("  {} examples/s", readable::quantity(sample.examples_per_second));
  text += fmt::format("  replicas {}/{} needed", sample.live, sample.needed);
  text += fmt::format("  {} dropped", readable::count(sample.dropped));
  return text + remaining(sample, now);
}

std::string progress::remaining(const progress_sample& sample, job_time now) const {
  if (sample.step_count == 0 || sample.step <= first_->step) return {};
  const job_time elapsed = now - first_->when;
  if (is_last(sample)) return fmt::format("  took {}", readable::duration(now));
  const double share = static_cast<double>(sample.step_count - sample.step)
                       / static_cast<double>(sample.step - first_->step);
  const auto left = std::chrono::duration<double, std::nano>(elapsed) * share;
  return fmt::format("  ETA {}", readable::duration(std::chrono::duration_cast<job_time>(left)));
}

} // namespace troupe
