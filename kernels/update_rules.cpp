// SPDX-License-Identifier: Apache-2.0
// Which settings of an optimizer are refused.
#include "kernels/update_rules.hpp"

#include <string>
#include <string_view>

namespace troupe {

namespace {

/// The first complaint about the settings of one rule, or an empty line.
struct complaint {
  std::string line;

  /// Notes that `setting` must be `range`, unless it is or something else was wrong before.
  void unless(bool fine, std::string_view setting, double value, std::string_view range) {
    if (fine || !line.empty()) return;
    line.append(setting).append(" is ").append(std::to_string(value));
    line.append(": it must be ").append(range);
  }

  void unless_rate(double learning_rate) {
    unless(std::isfinite(learning_rate) && learning_rate >= 0, "learning_rate", learning_rate,
           "0 or a positive number");
  }

  void unless_weight_decay(double weight_decay) {
    unless(std::isfinite(weight_decay) && weight_decay >= 0, "weight_decay", weight_decay,
           "0 or a positive number");
  }

  void unless_decay(std::string_view setting, double value) {
    unless(value >= 0 && value < 1, setting, value, "at least 0 and below 1");
  }

  void operator()(const rules::sgd& rule) {
    unless_rate(rule.learning_rate);
    unless_weight_decay(rule.weight_decay);
  }

  void operator()(const rules::momentum& rule) {
    unless_rate(rule.learning_rate);
    unless_decay("momentum", rule.decay);
    unless_weight_decay(rule.weight_decay);
  }

  void operator()(const rules::adam& rule) {
    unless_rate(rule.learning_rate);
    unless_decay("beta1", rule.beta1);
    unless_decay("beta2", rule.beta2);
    unless(std::isfinite(rule.epsilon) && rule.epsilon >= 0, "epsilon", rule.epsilon,
           "0 or a positive number");
    unless(rule.step >= 1, "step", static_cast<double>(rule.step), "1 for the first update");
  }
};

} // namespace

expected<void> validate(const update_rule& rule) {
  complaint found;
  std::visit([&](const auto& settings) { found(settings); }, rule);
  if (!found.line.empty()) return fail(errc::invalid_argument, found.line);
  return {};
}

} // namespace troupe
