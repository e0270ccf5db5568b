// SPDX-License-Identifier: Apache-2.0
// Reads the metrics and actors that a job serves, and lays them out as a page.
#include "tools/top/view.hpp"

#include "actors/recording/readable.hpp"
#include "messages/errors/printable.hpp"
#include "tools/system/json_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

namespace troupe {

namespace {

// The value of the sample with that name and these labels; nothing if there is none. Prometheus
// writes "NaN", "+Inf" and numbers.
std::optional<double> sample(std::string_view metrics, std::string_view name) {
  while (!metrics.empty()) {
    auto line = metrics.substr(0, metrics.find('\n'));
    metrics.remove_prefix(std::min(line.size() + 1, metrics.size()));
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') continue;
    auto text = line.substr(name.size() + 1);
    double value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{})
      return value;
    return std::numeric_limits<double>::quiet_NaN();
  }
  return std::nullopt;
}

/// A sample about a task.
struct task_sample {
  std::string task;
  double value = 0;
};

// The samples of a family with the label `task`, whose values have no escapes.
std::vector<task_sample> task_samples(std::string_view metrics, std::string_view family) {
  std::vector<task_sample> all;
  auto begin = fmt::format("\n{}{{task=\"", family);
  for (auto at = metrics.find(begin); at != std::string_view::npos;
       at = metrics.find(begin, at + 1)) {
    auto task = metrics.substr(at + begin.size());
    task = task.substr(0, task.find('"'));
    auto name = metrics.substr(at + 1, begin.size() - 1 + task.size() + 2);
    auto line = metrics.substr(at + 1, metrics.find('\n', at + 1) - at - 1);
    all.push_back({printable(std::string{task}), sample(line, name).value_or(0)});
  }
  return all;
}

// The job asks its processes for reports every second.
constexpr double silent_after_seconds = 5;

void read_tasks(std::string_view metrics, top_sample& now) {
  std::map<std::string, double> ages;
  for (const auto& [task, age] : task_samples(metrics, "troupe_task_report_age_seconds"))
    ages[task] = age;
  auto tasks = task_samples(metrics, "troupe_task_up");
  now.tasks = tasks.size();
  for (const auto& [name, is_up] : tasks) {
    top_task task{.name = name, .is_lost = is_up == 0, .age_seconds = {}};
    if (auto age = ages.find(name); age != ages.end()) task.age_seconds = age->second;
    if (task.is_lost || task.age_seconds.value_or(silent_after_seconds) >= silent_after_seconds)
      now.silent.push_back(std::move(task));
  }
}

top_actor actor_of(const nlohmann::json& json) {
  top_actor actor{.name = text_at(json, "name"),
                  .task = text_at(json, "task"),
                  .state = text_at(json, "state"),
                  .last_message = {},
                  .mailbox_depth = count_at(json, "mailbox_depth").value_or(0),
                  .handled = count_at(json, "handled").value_or(0),
                  .errors = count_at(json, "errors").value_or(0),
                  .late = count_at(json, "late"),
                  .state_seconds = number_at(json, "state_seconds").value_or(0)};
  auto last = json.find("last_message");
  if (last == json.end() || !last->is_object()) return actor;
  auto from = text_at(*last, "from");
  actor.last_message = text_at(*last, "kind") + (from.empty() ? "" : " from " + from);
  return actor;
}

// Rows come in ascending order of it.
auto rank_of(const top_actor& actor) {
  return std::tuple{actor.state == "ended", ~actor.mailbox_depth, actor.state != "computing",
                    actor.name};
}

std::string fitted(std::string text, size_t width) {
  text.resize(std::min(text.find_last_not_of(' ') + 1, width));
  return text + "\n";
}

// A line too many would scroll the window.
std::string first_lines(std::string page, size_t count) {
  size_t end = 0;
  for (size_t line = 0; line < count && end < page.size(); ++line)
    end = page.find('\n', end) + 1;
  page.resize(end);
  return page;
}

/// The widths of columns that depend on their content.
struct top_widths {
  size_t name = 5;
  size_t task = 0; ///< 0: there is no such column.
};

std::string line(const top_widths& widths, std::string_view name, std::string_view task,
                 std::string_view state, std::string_view duration, std::string_view late,
                 std::string_view mailbox, std::string_view handled,
                 std::string_view last_message) {
  auto task_column
    = widths.task > 0 ? fmt::format("{:{}.{}}  ", task, widths.task, widths.task) : "";
  return fmt::format("{:{}.{}}  {}{:9}  {:>8}  {:>6}  {:>7}  {:>9}  {}", name, widths.name,
                     widths.name, task_column, state, duration, late, mailbox, handled,
                     last_message);
}

std::string row(const top_actor& actor, const top_widths& widths) {
  auto last = actor.last_message;
  if (actor.errors > 0) last += fmt::format("  ({} errors)", readable::count(actor.errors));
  return line(widths, actor.name, actor.task, actor.state, readable::duration(actor.state_seconds),
              actor.late ? readable::count(*actor.late) : "", readable::count(actor.mailbox_depth),
              readable::count(actor.handled), last);
}

std::string row(const top_task& task) {
  if (!task.age_seconds) return fmt::format("{}: has not reported yet", task.name);
  return fmt::format("{}: {}, last seen {} ago", task.name, task.is_lost ? "lost" : "silent",
                     readable::duration(*task.age_seconds));
}

// The first few, so that actors have room.
std::vector<std::string> rows(const std::vector<top_task>& silent) {
  constexpr size_t shown_max = 5;
  auto shown = silent.size() > shown_max ? shown_max - 1 : silent.size();
  std::vector<std::string> texts;
  for (size_t i = 0; i < shown; ++i)
    texts.push_back(row(silent[i]));
  if (shown < silent.size())
    texts.push_back(fmt::format("and {} more tasks", silent.size() - shown));
  return texts;
}

std::string speed(const top_sample& now, std::optional<double> steps_per_second) {
  if (steps_per_second) return readable::quantity(*steps_per_second);
  return now.mean_step_seconds > 0 ? readable::quantity(1 / now.mean_step_seconds) : "-";
}

std::string loss(const top_sample& now) {
  return std::isnan(now.loss) ? "-" : fmt::format("{:.4g}", now.loss);
}

uint64_t count_of(double value) {
  return value > 0 && value < 1e18 ? static_cast<uint64_t>(value) : 0;
}

// Names get at most a third of the window, tasks a sixth.
top_widths widths_of(const std::vector<top_actor>& actors, size_t window_width) {
  top_widths widths;
  for (const auto& actor : actors) {
    widths.name = std::max(widths.name, actor.name.size());
    widths.task = std::max(widths.task, actor.task.size());
  }
  widths.name = std::min(widths.name, std::max<size_t>(window_width / 3, 5));
  widths.task = std::min(widths.task, std::max<size_t>(window_width / 6, 5));
  return widths;
}

} // namespace

expected<top_sample> read_top_sample(std::string_view metrics, std::string_view actors) {
  auto step = sample(metrics, "troupe_global_step");
  auto list = nlohmann::json::parse(actors, nullptr, false);
  if (!step || !list.is_array())
    return fail(errc::malformed, "what answers there is no job of troupe");
  auto value = [&](std::string_view name) { return sample(metrics, name).value_or(0); };
  top_sample now{.step = *step,
                 .loss = value("troupe_loss"),
                 .live = value("troupe_live_replicas"),
                 .needed = value("troupe_needed_gradients"),
                 .accepted = value("troupe_gradients_total{verdict=\"accepted\"}"),
                 .stale = value("troupe_gradients_total{verdict=\"stale\"}"),
                 .cancelled = value("troupe_gradients_total{verdict=\"cancelled\"}")};
  if (auto count = value("troupe_step_seconds_count"); count > 0)
    now.mean_step_seconds = value("troupe_step_seconds_sum") / count;
  read_tasks(metrics, now);
  for (const auto& json : list)
    if (json.is_object()) now.actors.push_back(actor_of(json));
  std::ranges::sort(now.actors, {}, rank_of);
  return now;
}

std::string top_page(std::string_view endpoint, const top_sample& now,
                     std::optional<double> steps_per_second, top_window window) {
  auto page
    = fitted(fmt::format("troupe top {}  step {}  {} steps/s  loss {}  live {}/{}", endpoint,
                         readable::count(count_of(now.step)), speed(now, steps_per_second),
                         loss(now), count_of(now.live), count_of(now.needed)),
             window.width);
  auto processes = now.tasks > 0 ? fmt::format(" of {} tasks", now.tasks) : "";
  page += fitted(
    fmt::format("gradients: {} accepted, {} stale, {} cancelled; {} actors{}",
                readable::count(count_of(now.accepted)), readable::count(count_of(now.stale)),
                readable::count(count_of(now.cancelled)), now.actors.size(), processes),
    window.width);
  auto silent = rows(now.silent);
  for (const auto& text : silent)
    page += fitted(text, window.width);
  auto widths = widths_of(now.actors, window.width);
  page += "\n";
  page += fitted(
    line(widths, "actor", "task", "state", "for", "late", "mailbox", "handled", "last message"),
    window.width);
  auto lines_above = 4 + silent.size();
  auto rows = std::min(now.actors.size(), window.height - std::min(window.height, lines_above));
  for (size_t i = 0; i < rows; ++i)
    page += fitted(row(now.actors[i], widths), window.width);
  return first_lines(std::move(page), window.height);
}

} // namespace troupe
