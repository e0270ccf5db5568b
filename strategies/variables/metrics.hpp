// SPDX-License-Identifier: Apache-2.0
// Metrics that each replica adds to, and that are read over all replicas.
#pragma once

#include "kernels/tensor/tensor.hpp"
#include "strategies/contexts/replica_context.hpp"
#include "strategies/contexts/strategy.hpp"

#include <string>

namespace troupe {

/// The common part of all metrics: a variable that is synchronised on read and sums up, so that a
/// replica adds to its own copy without waiting for others. It is saved with the strategy's
/// variables.
///
/// Thread: any replica's for `update_state`; the strategy's for the other calls.
class running_total {
public:
  /// @param name The name of its variable; unique among the strategy's variables.
  running_total(strategy& strategy, std::string name);

  /// Forgets everything.
  void reset_state();

protected:
  /// Adds to both numbers of this replica.
  [[nodiscard]] task<void> add(replica_context& context, double total, double count) const;

  /// Both numbers over all replicas.
  [[nodiscard]] std::pair<double, double> totals() const;

private:
  strategy* strategy_;
  variable totals_; ///< Shape [2], f64: total and count.
};

/// The sum of all values.
class sum_metric : public running_total {
public:
  using running_total::running_total;

  [[nodiscard]] task<void> update_state(replica_context& context, double value) const {
    return add(context, value, 1);
  }

  [[nodiscard]] double result() const { return totals().first; }
};

/// The mean of all values, each with its weight; 0 if there was none.
class mean_metric : public running_total {
public:
  using running_total::running_total;

  [[nodiscard]] task<void> update_state(replica_context& context, double value,
                                        double weight = 1) const {
    return add(context, value * weight, weight);
  }

  [[nodiscard]] double result() const;
};

/// The share of rows with the largest number at the place that the label says; 0 if there was none.
class accuracy_metric : public mean_metric {
public:
  using mean_metric::mean_metric;

  /// Shape: predictions [rows, classes] f32 or f64; labels [rows] i64. The first of several equal
  /// numbers counts; a row with a NaN is wrong.
  /// Errors: throws `failure` with invalid_argument if they do not fit together.
  [[nodiscard]] task<void> update_state(replica_context& context, tensor predictions,
                                        tensor labels) const;
};

} // namespace troupe
