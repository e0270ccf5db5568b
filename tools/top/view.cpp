// SPDX-License-Identifier: Apache-2.0
// Reading what a job serves, and laying it out.
#include "tools/top/view.hpp"

#include "actors/recording/readable.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <tuple>

namespace troupe {

namespace {

// The value of the sample that is spelled so; nothing if there is none. Prometheus writes "NaN",
// "+Inf" and numbers.
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

std::string printable(std::string text) {
  std::ranges::replace_if(
    text, [](char letter) { return static_cast<unsigned char>(letter) < ' ' || letter == 0x7f; },
    '?');
  return text;
}

std::string text_of(const nlohmann::json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? printable(found->get<std::string>()) : "";
}

double number_at(const nlohmann::json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

uint64_t count_of(const nlohmann::json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

top_actor actor_of(const nlohmann::json& json) {
  top_actor actor{.name = text_of(json, "name"),
                  .state = text_of(json, "state"),
                  .mailbox_depth = count_of(json, "mailbox_depth"),
                  .handled = count_of(json, "handled"),
                  .errors = count_of(json, "errors")};
  auto last = json.find("last_message");
  if (last == json.end() || !last->is_object()) return actor;
  auto from = text_of(*last, "from");
  actor.last_message = text_of(*last, "kind") + (from.empty() ? "" : " from " + from);
  actor.age_seconds = number_at(*last, "age_seconds");
  return actor;
}

bool comes_before(const top_actor& one, const top_actor& other) {
  auto place = [](const top_actor& actor) {
    return std::tuple{actor.state == "ended", ~actor.mailbox_depth, actor.name};
  };
  return place(one) < place(other);
}

std::string fitted(std::string text, size_t width) {
  text.resize(std::min(text.find_last_not_of(' ') + 1, width));
  return text + "\n";
}

std::string line(std::string_view name, size_t name_width, std::string_view state,
                 std::string_view mailbox, std::string_view handled, std::string_view age,
                 std::string_view last_message) {
  return fmt::format("{:{}.{}}  {:7}  {:>7}  {:>9}  {:>10}  {}", name, name_width, name_width,
                     state, mailbox, handled, age, last_message);
}

std::string row(const top_actor& actor, size_t name_width) {
  auto age = std::chrono::duration<double>(std::clamp(actor.age_seconds, 0.0, 1e9));
  auto last = actor.last_message;
  if (actor.errors > 0) last += fmt::format("  ({} errors)", readable::count(actor.errors));
  return line(
    actor.name, name_width, actor.state, readable::count(actor.mailbox_depth),
    readable::count(actor.handled),
    actor.last_message.empty() ? "" : readable::duration(std::chrono::duration_cast<job_time>(age)),
    last);
}

std::string speed(const top_sample& now, std::optional<double> steps_per_second) {
  if (steps_per_second) return readable::quantity(*steps_per_second);
  return now.mean_step_seconds > 0 ? readable::quantity(1 / now.mean_step_seconds) : "-";
}

std::string loss(const top_sample& now) {
  return std::isnan(now.loss) ? "-" : fmt::format("{:.4g}", now.loss);
}

uint64_t whole(double number) {
  return number > 0 && number < 1e18 ? static_cast<uint64_t>(number) : 0;
}

// Names get a third of a narrow window.
size_t name_width_of(const std::vector<top_actor>& actors, size_t window_width) {
  size_t width = 5;
  for (const auto& actor : actors)
    width = std::max(width, actor.name.size());
  return std::min(width, std::max<size_t>(window_width / 3, 5));
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
  for (const auto& json : list)
    if (json.is_object()) now.actors.push_back(actor_of(json));
  std::ranges::sort(now.actors, comes_before);
  return now;
}

std::string top_page(std::string_view endpoint, const top_sample& now,
                     std::optional<double> steps_per_second, top_window window) {
  auto page
    = fitted(fmt::format("troupe top {}  step {}  {} steps/s  loss {}  live {}/{}", endpoint,
                         readable::count(whole(now.step)), speed(now, steps_per_second), loss(now),
                         whole(now.live), whole(now.needed)),
             window.width);
  page
    += fitted(fmt::format("gradients: {} accepted, {} stale, {} cancelled; {} actors",
                          readable::count(whole(now.accepted)), readable::count(whole(now.stale)),
                          readable::count(whole(now.cancelled)), now.actors.size()),
              window.width);
  auto name_width = name_width_of(now.actors, window.width);
  page += "\n";
  page += fitted(line("actor", name_width, "state", "mailbox", "handled", "age", "last message"),
                 window.width);
  constexpr size_t lines_above = 4;
  auto rows = std::min(now.actors.size(), window.height - std::min(window.height, lines_above));
  for (size_t i = 0; i < rows; ++i)
    page += fitted(row(now.actors[i], name_width), window.width);
  return page;
}

} // namespace troupe
