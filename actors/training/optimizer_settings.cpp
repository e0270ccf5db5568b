// SPDX-License-Identifier: Apache-2.0
// Writing and reading the settings of every type that shows them to a visitor.
#include "actors/training/optimizer_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>

namespace troupe {

namespace {

using setting_list = std::vector<std::pair<std::string, double>>;

template <class Holder>
setting_list settings_in(const Holder& holder) {
  setting_list list;
  Holder::visit_settings(holder, [&](std::string_view name, const auto& member, setting_range) {
    detail::for_each_number(member,
                            [&](double value) { list.emplace_back(std::string{name}, value); });
  });
  return list;
}

template <class Holder>
std::vector<std::string_view> names_in(const Holder& holder) {
  std::vector<std::string_view> names;
  Holder::visit_settings(
    holder, [&](std::string_view name, const auto&, setting_range) { names.push_back(name); });
  return names;
}

template <class T>
void set(T& member, double value) {
  member = static_cast<T>(value);
}

template <class T>
void set(std::vector<T>& list, double value) {
  list.push_back(static_cast<T>(value));
}

// @param owner The words for the holder in errors: "optimizer adam".
template <class Holder>
expected<void> read_setting(Holder& holder, const std::string& owner, const std::string& name,
                            double value) {
  auto result
    = expected<void>{fail(errc::not_found, fmt::format("{} has no setting '{}'; it has {}", owner,
                                                       name, fmt::join(names_in(holder), ", ")))};
  Holder::visit_settings(holder, [&](std::string_view known, auto& member, setting_range range) {
    if (known != name) return;
    if (!holds(range, value)) {
      result = fail(errc::invalid_argument, fmt::format("{}: {} is {}: it must be {}", owner, name,
                                                        value, to_string(range)));
      return;
    }
    set(member, value);
    result = {};
  });
  return result;
}

template <class Holder>
expected<void> read_settings(Holder& holder, const std::string& owner, const setting_list& list) {
  for (const auto& [name, value] : list)
    if (auto done = read_setting(holder, owner, name, value); !done) return done;
  return {};
}

expected<void> read_rule(update_plan& plan, const optimizer_settings& from) {
  auto rule = rule_of_name(from.name);
  if (!rule) return tl::unexpected<error>(rule.error());
  plan.rule = *rule;
  return read_settings(plan, "optimizer " + from.name, from.settings);
}

expected<void> read_schedule(update_plan& plan, const named_settings& from) {
  if (from.name.empty()) return {};
  auto shape = choice_of_name<schedule_shape>("schedule", from.name);
  if (!shape) return tl::unexpected<error>(shape.error());
  plan.schedule.shape = *shape;
  return read_settings(plan.schedule, "schedule " + from.name, from.settings);
}

expected<void> read_average(update_plan& plan, const named_settings& from) {
  if (from.name.empty()) return {};
  plan.average = moving_average{from.name};
  return read_settings(*plan.average, "average " + from.name, from.settings);
}

} // namespace

optimizer_settings to_settings(const update_plan& plan) {
  optimizer_settings result{std::string{name_of(plan.rule)}, settings_in(plan)};
  result.schedule = {std::string{name_of(plan.schedule.shape)}, settings_in(plan.schedule)};
  if (plan.average) result.average = {plan.average->name, settings_in(*plan.average)};
  return result;
}

expected<update_plan> to_plan(const optimizer_settings& optimizer) {
  update_plan plan;
  auto read = read_rule(plan, optimizer)
                .and_then([&] { return read_schedule(plan, optimizer.schedule); })
                .and_then([&] { return read_average(plan, optimizer.average); })
                .and_then([&] { return validate(plan); });
  if (!read) return tl::unexpected<error>(read.error());
  return plan;
}

expected<std::vector<std::string_view>> setting_names(std::string_view optimizer) {
  return rule_of_name(optimizer).map(
    [](const update_rule& rule) { return names_in(update_plan{.rule = rule}); });
}

} // namespace troupe
