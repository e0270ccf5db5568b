// SPDX-License-Identifier: Apache-2.0
// The lines of ledger.csv.
#include "actors/recording/ledger_file.hpp"

#include "actors/recording/csv.hpp"
#include "actors/recording/step_figures.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace troupe {

namespace {

// The three fields that only an accepted contribution has.
struct wait_fields {
  std::string waited_for;
  std::string waited_for_seconds;
  std::string idle_seconds;
};

wait_fields waits_of(const step_record& step, const contribution& accepted) {
  const auto* last = completing_contribution(step);
  wait_fields fields;
  if (last != &accepted) {
    fields.waited_for = std::to_string(last->replica);
    fields.waited_for_seconds = csv::seconds(waited_for_completion(step, accepted));
  }
  fields.idle_seconds = csv::seconds(idle_until_end(step, accepted));
  return fields;
}

std::string line_of(uint64_t step, const contribution& gradient, std::string_view verdict,
                    const wait_fields& waits) {
  return csv::line({std::to_string(step), std::to_string(gradient.replica), verdict,
                    std::to_string(gradient.local_step), std::to_string(gradient.staleness),
                    csv::seconds(gradient.arrived), csv::seconds(gradient.compute),
                    csv::seconds(gradient.waited), waits.waited_for, waits.waited_for_seconds,
                    waits.idle_seconds, csv::field(gradient.loss),
                    std::to_string(gradient.examples)});
}

// Limits of lines that are read back.
constexpr uint32_t replicas_max = 1'000'000;
constexpr uint64_t steps_max = uint64_t{1} << 53; // larger numbers have gaps in JavaScript
constexpr double seconds_max = 1e9; // sums and differences of a few still fit in nanoseconds

template <class Number>
bool read(std::string_view text, Number& number) {
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc{} && end == text.data() + text.size();
}

bool read(std::string_view text, job_time& time) {
  double seconds = 0;
  if (!read(text, seconds) || !(std::abs(seconds) < seconds_max)) return false;
  time = job_time{std::llround(seconds * 1e9)};
  return true;
}

bool read(std::string_view text, gradient_verdict& verdict) {
  constexpr std::string_view names[] = {"accepted", "stale", "cancelled"};
  const auto* found = std::ranges::find(names, text);
  verdict = static_cast<gradient_verdict>(found - names);
  return found != std::end(names);
}

// An empty field stands for a loss that was not finite.
bool read_loss(std::string_view text, double& loss) {
  loss = std::numeric_limits<double>::quiet_NaN();
  return text.empty() || read(text, loss);
}

} // namespace

expected<ledger_file> ledger_file::create(std::filesystem::path path, uint64_t bytes_max) {
  return record_writer::create(std::move(path), header).map([&](record_writer lines) {
    return ledger_file{std::move(lines), bytes_max};
  });
}

expected<void> ledger_file::append(const step_record& step) {
  std::string lines;
  for (const auto& gradient : step.accepted)
    lines += line_of(step.step, gradient, "accepted", waits_of(step, gradient));
  for (const auto& gradient : step.stale)
    lines += line_of(step.step, gradient, "stale", {});
  for (const auto& gradient : step.cancelled)
    lines += line_of(step.step, gradient, "cancelled", {});
  is_full_ = is_full_ || lines.size() > bytes_left_;
  if (is_full_)
    return fail(errc::limit_exceeded,
                fmt::format("{} ends with step {}: it is as large as it may be",
                            lines_.path().filename().string(), last_step_));
  bytes_left_ -= lines.size();
  last_step_ = step.step;
  return lines_.append(lines);
}

std::optional<ledger_line> read_ledger_line(std::string_view text) {
  constexpr ptrdiff_t column_count = 13;
  if (std::ranges::count(text, ',') != column_count - 1) return std::nullopt;
  std::array<std::string_view, column_count> fields;
  for (auto& field : fields) {
    field = text.substr(0, text.find(','));
    text.remove_prefix(std::min(field.size() + 1, text.size()));
  }
  ledger_line line;
  auto& gradient = line.gradient;
  auto is_whole = read(fields[0], line.step) && read(fields[1], gradient.replica)
                  && read(fields[2], line.verdict) && read(fields[3], gradient.local_step)
                  && read(fields[4], gradient.staleness) && read(fields[5], gradient.arrived)
                  && read(fields[6], gradient.compute) && read(fields[7], gradient.waited)
                  && read_loss(fields[11], gradient.loss) && read(fields[12], gradient.examples);
  if (!is_whole || gradient.replica >= replicas_max || gradient.local_step >= line.step
      || line.step > steps_max)
    return std::nullopt;
  if (line.verdict != gradient_verdict::accepted) return line;
  if (!read(fields[10], line.idle) || line.idle < job_time{0}) return std::nullopt;
  return line;
}

} // namespace troupe
