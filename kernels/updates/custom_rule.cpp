// SPDX-License-Identifier: Apache-2.0
// The register of the rules that programs bring, and how a pass calls one.
#include "kernels/updates/custom_rule.hpp"

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

namespace {

/// Code belongs to a process and not to a world, so there is one of these.
struct rule_registry {
  std::mutex mutex;
  std::vector<const rules::custom_code*> known;

  static rule_registry& of_process() {
    static rule_registry registry;
    return registry;
  }

  /// Null if there is none of that name. @pre The mutex is held.
  const rules::custom_code* find(std::string_view name) const {
    auto found = std::ranges::find(known, name, &rules::custom_code::name);
    return found == known.end() ? nullptr : *found;
  }
};

} // namespace

expected<void> detail::register_rule(const rules::custom_code& code) {
  if (code.name.empty()) return fail(errc::invalid_argument, "an optimizer needs a name");
  std::set<std::string_view> slots;
  for (auto slot : code.slot_names)
    if (!slots.insert(slot).second)
      return fail(errc::invalid_argument, "optimizer '" + std::string{code.name}
                                            + "' has two slots '" + std::string{slot}
                                            + "'; a checkpoint finds them by their names");
  auto& registry = rule_registry::of_process();
  std::lock_guard guard{registry.mutex};
  if (std::ranges::count(choice_names<update_rule>(), code.name) > 0
      || registry.find(code.name) != nullptr)
    return fail(errc::invalid_argument, "there is an optimizer '" + std::string{code.name}
                                          + "' already; give this one another name");
  registry.known.push_back(&code);
  return {};
}

expected<update_rule> rule_of_name(std::string_view name) {
  auto& registry = rule_registry::of_process();
  std::lock_guard guard{registry.mutex};
  if (const auto* code = registry.find(name)) return rules::custom{*code};
  auto built_in = choice_of_name<update_rule>("optimizer", name);
  if (built_in) return built_in;
  auto line = std::move(built_in.error().message);
  for (const auto* code : registry.known)
    line.append(", ").append(code->name);
  return fail(errc::not_found, line + "; register one of your own in every process");
}

namespace cpu {

template <>
void apply_to<rules::custom>(const block<float>& at,
                             const rules::custom::for_elements<float>& apply) {
  apply.step(at);
}

template <>
void apply_to<rules::custom>(const block<double>& at,
                             const rules::custom::for_elements<double>& apply) {
  apply.step(at);
}

} // namespace cpu

template <>
rules::custom::for_elements<float>::for_elements(const custom& settings)
  : step(settings.code->step_of_floats(settings)) {}

template <>
rules::custom::for_elements<double>::for_elements(const custom& settings)
  : step(settings.code->step_of_doubles(settings)) {}

} // namespace troupe
