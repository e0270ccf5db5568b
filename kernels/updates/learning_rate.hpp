// SPDX-License-Identifier: Apache-2.0
// Schedules: how the learning rate changes over the updates of a job.
#pragma once

#include "kernels/updates/choice.hpp"
#include "kernels/updates/update_rules.hpp"

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe {

/// The courses that a learning rate can take, each as the factor that the rule's own rate is
/// multiplied with; `done` counts the updates before this one, from 0: TensorFlow's step.
namespace schedules {

/// factor = 1
struct constant {
  static constexpr std::string_view name = "constant";

  template <class Self, class Visit>
  static void visit_settings(Self&, const Visit&) {}

  [[nodiscard]] double factor(uint64_t done) const;
};

/// factors[0] up to and including boundaries[0], then factors[1] up to boundaries[1], and so on.
/// Source: Keras' PiecewiseConstantDecay.
struct piecewise {
  std::vector<uint64_t> boundaries; ///< Updates done, ascending.
  std::vector<double> factors;      ///< One more than boundaries.

  static constexpr std::string_view name = "piecewise";

  template <class Self, class Visit>
  static void visit_settings(Self& shape, const Visit& visit) {
    visit("boundary", shape.boundaries, setting_range::count);
    visit("factor", shape.factors, setting_range::non_negative);
  }

  [[nodiscard]] double factor(uint64_t done) const;
};

/// factor = decay_rate^(done / updates); as a staircase, the quotient is rounded down.
/// Source: Keras' ExponentialDecay.
struct exponential {
  uint64_t updates = 1000;
  double decay_rate = 0.5;
  bool staircase = false;

  static constexpr std::string_view name = "exponential";

  template <class Self, class Visit>
  static void visit_settings(Self& shape, const Visit& visit) {
    visit("updates", shape.updates, setting_range::positive_count);
    visit("decay_rate", shape.decay_rate, setting_range::non_negative);
    visit("staircase", shape.staircase, setting_range::flag);
  }

  [[nodiscard]] double factor(uint64_t done) const;
};

/// factor = (1 - end_factor) * ((updates - done) / updates)^power + end_factor, and end_factor
/// after so many updates; or in cycles, each of which lasts to the next multiple of `updates`.
/// Power 1 is a straight line. Source: Keras' PolynomialDecay.
struct polynomial {
  uint64_t updates = 1000;
  double end_factor = 0;
  double power = 1;
  bool cycle = false;

  static constexpr std::string_view name = "polynomial";

  template <class Self, class Visit>
  static void visit_settings(Self& shape, const Visit& visit) {
    visit("updates", shape.updates, setting_range::positive_count);
    visit("end_factor", shape.end_factor, setting_range::non_negative);
    visit("power", shape.power, setting_range::non_negative);
    visit("cycle", shape.cycle, setting_range::flag);
  }

  [[nodiscard]] double factor(uint64_t done) const;
};

/// factor = (1 - alpha) * (1 + cos(pi * done / updates)) / 2 + alpha, and alpha after so many.
/// Source: Loshchilov and Hutter, "SGDR", 2017, equation 5, as Keras' CosineDecay.
struct cosine {
  uint64_t updates = 1000;
  double alpha = 0;

  static constexpr std::string_view name = "cosine";

  template <class Self, class Visit>
  static void visit_settings(Self& shape, const Visit& visit) {
    visit("updates", shape.updates, setting_range::positive_count);
    visit("alpha", shape.alpha, setting_range::non_negative);
  }

  [[nodiscard]] double factor(uint64_t done) const;
};

} // namespace schedules

/// Any course of a learning rate.
using schedule_shape
  = std::variant<schedules::constant, schedules::piecewise, schedules::exponential,
                 schedules::polynomial, schedules::cosine>;

/// Long strides find the valley, short ones its floor: a rate that falls towards the end of a job
/// reaches a lower loss than any constant one. And short ones find the way out of a bad start: a
/// rate may first rise in a straight line.
/// Source of the warm-up: Goyal et al., "Accurate, large minibatch SGD", 2017, section 2.2, counted
/// as in Keras' CosineDecay: the first update has `warm_up_from`.
struct learning_rate_schedule {
  schedule_shape shape = schedules::constant{}; ///< Begins after the warm-up.
  uint64_t warm_up_updates = 0;
  double warm_up_from = 0; ///< Factor at the first update of a warm-up.

  /// The factor of the rule's rate. @param update_number From 1.
  [[nodiscard]] double factor(uint64_t update_number) const;

  /// The rule as it is at one update.
  [[nodiscard]] update_rule at(update_rule rule, uint64_t update_number) const;

  /// Shows every setting to `visit(name, member, range)`.
  template <class Self, class Visit>
  static void visit_settings(Self& schedule, const Visit& visit) {
    troupe::visit_settings(schedule.shape, visit);
    visit("warm_up_updates", schedule.warm_up_updates, setting_range::count);
    visit("warm_up_from", schedule.warm_up_from, setting_range::share);
  }
};

/// The rate falls in a straight line, from the rule's own at the first update to 0 after so many;
/// 0 = it stays constant.
[[nodiscard]] learning_rate_schedule linear_decay(uint64_t updates);

/// Refuses settings that are out of their ranges, and boundaries that no factors fit.
/// Errors: invalid_argument; the line names the setting.
[[nodiscard]] expected<void> validate(const learning_rate_schedule& schedule);

} // namespace troupe
