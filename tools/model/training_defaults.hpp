// SPDX-License-Identifier: Apache-2.0
// The default text of a language model, and the default learning rates.
#pragma once

#include "kernels/updates/update_rules.hpp"

#include <string_view>
#include <utility>

namespace troupe {

namespace train_defaults {
inline constexpr std::string_view text = "/usr/share/common-licenses/GPL-3";

/// Learning rates that suit most runs, for each optimizer, in the order of `update_rule`: the best
/// of a few that were tried on 2500 steps.
inline constexpr std::pair<std::string_view, double> learning_rates[] = {
  {rules::sgd::name, 1},        {rules::momentum::name, 0.1}, {rules::lion::name, 0.001},
  {rules::adagrad::name, 1},    {rules::rmsprop::name, 0.01}, {rules::centered_rmsprop::name, 0.01},
  {rules::adadelta::name, 10},  {rules::adam::name, 0.01},    {rules::adamw::name, 0.01},
  {rules::amsgrad::name, 0.01}, {rules::adamax::name, 0.03},  {rules::nadam::name, 0.01},
  {rules::ftrl::name, 1},       {rules::lars::name, 3},       {rules::lamb::name, 0.01},
};
} // namespace train_defaults

/// The learning rate that suits most runs of the perceptron with this optimizer.
[[nodiscard]] constexpr double default_learning_rate(std::string_view optimizer) {
  for (const auto& [name, rate] : train_defaults::learning_rates)
    if (name == optimizer) return rate;
  return 0; // there is no such optimizer
}

} // namespace troupe
