// SPDX-License-Identifier: Apache-2.0
// The plan of an update: a rule, its schedule, clips and a moving average.
#pragma once

#include "kernels/updates/learning_rate.hpp"
#include "kernels/updates/update_rules.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace troupe {

/// Limits of a mean gradient, which is cut before it is applied; at most one of the two.
struct gradient_clip {
  /// Elements beyond +-this become +-this: `clipvalue` in Keras. 0 = they stay.
  double value_max = 0;
  /// A gradient with a larger norm is made so long: `clipnorm` in Keras. 0 = it stays. If the norm
  /// is not finite, all of it becomes NaN, so that the variable shows what happened.
  double norm_max = 0;
};

/// A moving average that an owner keeps beside its variable:
/// shadow -= (1 - decay) * (shadow - value) after each update.
/// Source: TensorFlow's ExponentialMovingAverage.
struct moving_average {
  std::string name = "ExponentialMovingAverage"; ///< The shadow is called <variable>/<name>.
  double decay = 0.999;
  /// Lets young averages forget faster: after n updates, the decay is (1 + n) / (10 + n) if that is
  /// less. The n of TensorFlow's `num_updates` is the number of updates of the variable.
  bool num_updates = false;

  /// The decay after so many updates.
  [[nodiscard]] double decay_at(uint64_t update_number) const;

  /// Shows every setting to `visit(name, member, range)`.
  template <class Self, class Visit>
  static void visit_settings(Self& average, const Visit& visit) {
    visit("decay", average.decay, setting_range::share);
    visit("num_updates", average.num_updates, setting_range::flag);
  }
};

/// An update in names and numbers: the optimizer's rule, and everything that happens around it.
struct update_plan {
  update_rule rule = rules::sgd{};
  learning_rate_schedule schedule;
  gradient_clip clip;
  /// Whether rows that no sparse gradient of a step holds are updated as by a gradient of zeros, so
  /// that their momentum goes on. If not, updates are "lazy": those rows and their slots rest, and
  /// what a step costs does not depend on the size of the table. Layer-wise rules are always exact.
  bool sparse_exact = false;
  /// Kept of variables that are synchronised on write only.
  std::optional<moving_average> average;

  /// Shows every setting but those of schedule and average to `visit(name, member, range)`.
  template <class Self, class Visit>
  static void visit_settings(Self& plan, const Visit& visit) {
    troupe::visit_settings(plan.rule, visit);
    visit("clip_value", plan.clip.value_max, setting_range::non_negative);
    visit("clip_norm", plan.clip.norm_max, setting_range::non_negative);
    visit("sparse_exact", plan.sparse_exact, setting_range::flag);
  }
};

/// Refuses settings that are out of their ranges.
/// Errors: invalid_argument; the line names the setting and its range.
[[nodiscard]] expected<void> validate(const update_plan& plan);

} // namespace troupe
