// SPDX-License-Identifier: Apache-2.0
// Writes the content of a run's page as JSON.
#include "tools/report/run_json.hpp"

#include "actors/recording/readable.hpp"
#include "actors/recording/seconds.hpp"
#include "actors/recording/step_figures.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

namespace troupe {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t replica_lines_max = 64; // of the table of single replicas
constexpr size_t shown_bytes_max = 400;  // of one notice, or a name

// Rounds to five digits, more than a screen shows. A number that is not finite becomes null.
json rounded(double number, int digits = 5) {
  if (!std::isfinite(number)) return nullptr;
  auto text = fmt::format("{:.{}g}", number, digits);
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string shortened(const std::string& text) {
  return text.size() <= shown_bytes_max ? text : text.substr(0, shown_bytes_max) + "...";
}

// [first step, mean, least, greatest] of every stretch.
json series_json(const step_series& series, double scale = 1) {
  auto points = json::array();
  for (const auto& stretch : series.stretches())
    points.push_back({stretch.first_step,
                      rounded(scale * stretch.sum / static_cast<double>(stretch.count)),
                      rounded(scale * stretch.least), rounded(scale * stretch.greatest)});
  return {{"width", series.width()}, {"points", std::move(points)}};
}

json axis_json(const folding_axis& axis) {
  return {{"count", axis.count()}, {"width", axis.width()}};
}

template <class Value>
json table_json(const folding_table& table, const Value& value) {
  auto cells = json::array();
  for (size_t row = 0; row < table.rows().count(); ++row) {
    auto& line = cells.emplace_back(json::array());
    for (size_t column = 0; column < table.columns().count(); ++column)
      line.push_back(value(table.at(row, column)));
  }
  return {{"rows", axis_json(table.rows())},
          {"columns", axis_json(table.columns())},
          {"cells", std::move(cells)}};
}

// Whole hundredths, 0 where there was no gradient: less than half of the bytes.
json slow_down_json(const folding_table::cell& cell) {
  if (cell.count == 0) return 0;
  constexpr double most = 1e6;
  return std::lround(100 * std::min(cell.mean(), most));
}

json step_seconds_json(const run_view& view) {
  const auto& times = view.totals().step_times();
  auto result = series_json(view.step_seconds());
  auto elapsed = view.totals().elapsed() - view.began();
  result["mean"] = rounded(seconds(elapsed) / static_cast<double>(view.step_count()));
  result["p50"] = rounded(seconds(times.percentile(0.5)));
  result["p90"] = rounded(seconds(times.percentile(0.9)));
  result["p99"] = rounded(seconds(times.percentile(0.99)));
  result["longest"] = rounded(seconds(times.longest()));
  return result;
}

json gradients_json(const replica_summary& sum) {
  return {sum.accepted, sum.stale, sum.cancelled};
}

// The verdicts on gradients, and the use of time, of the replicas in each row of the arrivals.
json rows_json(const run_view& view) {
  std::vector<replica_summary> rows(view.arrivals().rows().count());
  for (const auto& [number, replica] : view.totals().replicas())
    rows[view.arrivals().rows().cell_of(number)] += replica;
  auto gradients = json::array();
  auto times = json::array();
  for (const auto& row : rows) {
    gradients.push_back(gradients_json(row));
    times.push_back({rounded(seconds(row.compute - row.wasted)), rounded(seconds(row.wasted)),
                     rounded(seconds(row.waiting))});
  }
  return {{"width", view.arrivals().rows().width()},
          {"gradients", std::move(gradients)},
          {"seconds", std::move(times)}};
}

// How many times a replica's usual distance between gradients is no chance any more.
constexpr uint64_t silent_from = 10;

// The gradients of a replica that a step uses, if all replicas are alike.
double share_of_each(const run_view& view) {
  const auto needed = static_cast<double>(view.last().needed);
  return needed / static_cast<double>(view.totals().replicas().size());
}

// Whether steps use less than half as many of a replica's gradients as if all replicas were alike.
bool is_left_out(const run_view& view, const replica_summary& sum) {
  constexpr uint64_t gradients_min = 20; // of fewer, chance alone may leave out many
  const auto gradients = sum.gradients();
  return gradients >= gradients_min
         && static_cast<double>(sum.accepted)
              < share_of_each(view) / 2 * static_cast<double>(gradients);
}

// The health of a replica without a gradient.
health_of_replica health_of_none(const run_view& view) {
  const auto expected = share_of_each(view) * static_cast<double>(view.step_count());
  if (expected > silent_from) return {replica_health::silent, "has given no gradient"};
  return {replica_health::well, "has given no gradient yet"};
}

json replica_json(const run_view& view, uint32_t number, const replica_summary& replica) {
  auto [health, words] = health_of(view, number);
  constexpr std::string_view names[] = {"well", "slow", "silent"};
  return {{"replica", number},
          {"health", names[static_cast<size_t>(health)]},
          {"words", words},
          {"gradients", gradients_json(replica)},
          {"staleness_max", replica.staleness_max},
          {"slow_down", rounded(view.slow_downs().mean_of(number), 3)},
          {"computing", rounded(seconds(replica.compute))},
          {"waiting", rounded(seconds(replica.waiting))},
          {"held_up", rounded(seconds(replica.held_up))},
          {"last_step", view.last_steps()[number]}};
}

// All replicas, or those that need attention most.
json replicas_json(const run_view& view) {
  std::vector<std::pair<uint32_t, replica_summary>> lines{view.totals().replicas().begin(),
                                                          view.totals().replicas().end()};
  if (lines.size() > replica_lines_max) {
    std::ranges::stable_sort(lines, std::greater{}, [&](const auto& line) {
      return std::pair{health_of(view, line.first).health, line.second.held_up};
    });
    lines.resize(replica_lines_max);
    std::ranges::sort(lines, {}, [](const auto& line) { return line.first; });
  }
  auto result = json::array();
  for (const auto& [number, replica] : lines)
    result.push_back(replica_json(view, number, replica));
  return result;
}

json answer_json(const what_if_answer& answer) {
  json result{{"change", answer.change},
              {"option", answer.option},
              {"needed", answer.needed},
              {"mean", rounded(answer.mean_step_seconds)},
              {"low", nullptr},
              {"high", nullptr},
              {"is_lower_bound", answer.is_lower_bound},
              {"stalled", shortened(answer.stalled)}};
  if (!answer.prediction) return result;
  result["low"] = rounded(answer.prediction->low);
  result["high"] = rounded(answer.prediction->high);
  return result;
}

json what_if_json(const what_if_table& table) {
  json result{{"first_step", table.first_step},           {"last_step", table.last_step},
              {"mean", rounded(table.mean_step_seconds)}, {"needed", table.needed},
              {"why_none", shortened(table.why_none)},    {"answers", json::array()}};
  for (const auto& answer : table.answers)
    result["answers"].push_back(answer_json(answer));
  return result;
}

json progress_json(const run_view& view, const run_heading& heading) {
  auto took = seconds(view.totals().elapsed() - view.began());
  auto rate = [took](uint64_t count) { return rounded(static_cast<double>(count) / took); };
  json result{{"first_step", view.first_step()},
              {"step", view.last().step},
              {"steps", view.step_count()},
              {"step_count", nullptr},
              {"seconds", rounded(took, 9)},
              {"steps_per_second", rate(view.step_count())},
              {"examples", view.totals().examples()},
              {"examples_per_second", rate(view.totals().examples())},
              {"live", view.last().live},
              {"needed", view.last().needed}};
  if (heading.step_count) result["step_count"] = *heading.step_count;
  return result;
}

json notices_json(const run_view& view) {
  auto result = json::array();
  for (const auto& notice : view.notices())
    result.push_back({notice.step, shortened(notice.text)});
  return result;
}

json heading_json(const run_heading& heading) {
  return {{"name", shortened(heading.name)},
          {"written", heading.written},
          {"state", heading.state},
          {"is_live", heading.is_live},
          {"setup", heading.setup}};
}

} // namespace

health_of_replica health_of(const run_view& view, uint32_t replica) {
  const auto& sum = view.totals().replicas().at(replica);
  const auto gradients = sum.gradients();
  if (gradients == 0) return health_of_none(view);
  const auto last = view.last_steps()[replica];
  const auto silent_steps = view.last().step - last;
  if (silent_steps > silent_from * std::max<uint64_t>(1, (last - view.first_step()) / gradients))
    return {replica_health::silent,
            fmt::format("has given no gradient since step {}", readable::count(last))};
  // Nothing says how long a cancelled gradient would have taken: where most of them are cancelled,
  // the mean is that of the fast ones.
  const auto slow_down = view.slow_downs().mean_of(replica);
  const auto left_out = is_left_out(view, sum);
  const auto is_mostly_cancelled = left_out && 2 * sum.cancelled > gradients;
  if (slow_down >= slow_from && !is_mostly_cancelled)
    return {replica_health::slow,
            fmt::format("takes {:.1f} times as long as the others", slow_down)};
  if (left_out)
    return {replica_health::slow,
            fmt::format("{} of its {} gradients were in time", readable::count(sum.accepted),
                        readable::count(gradients))};
  return {replica_health::well, "keeps up"};
}

std::vector<uint32_t> slow_replicas(const run_view& view) {
  std::vector<uint32_t> slow;
  for (const auto& [number, replica] : view.totals().replicas())
    if (health_of(view, number).health == replica_health::slow) slow.push_back(number);
  std::ranges::stable_sort(slow, std::greater{},
                           [&](uint32_t replica) { return view.slow_downs().mean_of(replica); });
  return slow;
}

std::string run_json(const run_view& view, const run_heading& heading,
                     const what_if_table* answers) {
  json run = heading_json(heading);
  run["progress"] = progress_json(view, heading);
  run["loss"] = series_json(view.losses(), heading.loss_scale);
  run["loss"]["unit"] = heading.loss_unit;
  run["loss"]["last"] = rounded(heading.loss_scale * view.last_loss());
  run["evaluations"] = series_json(view.evaluations());
  run["evaluations"]["measure"] = shortened(heading.measure);
  run["evaluations"]["last"] = rounded(view.last_evaluation());
  run["step_seconds"] = step_seconds_json(view);
  run["slow_downs"] = table_json(view.slow_downs().table(), slow_down_json);
  run["arrivals"] = table_json(view.arrivals(), [](const auto& cell) { return cell.count; });
  run["waits"] = table_json(view.waits(), [](const auto& cell) { return rounded(cell.sum, 4); });
  run["gradients"] = gradients_json(view.totals().total());
  run["rows"] = rows_json(view);
  run["replica_count"] = view.totals().replicas().size();
  run["replicas"] = replicas_json(view);
  run["what_if"] = answers != nullptr ? what_if_json(*answers) : json{};
  run["notices"] = notices_json(view);
  auto text = run.dump(-1, ' ', false, json::error_handler_t::replace);
  // This letter occurs in texts only, where it may be escaped.
  std::string safe;
  for (char letter : text)
    letter == '<' ? safe += "\\u003c" : safe += letter;
  return safe;
}

} // namespace troupe
