// SPDX-License-Identifier: Apache-2.0
// The parts of a trace: the distribution of usual times, slow replicas, slow periods.
#pragma once

#include "simulation/distributions/distribution.hpp"
#include "simulation/distributions/trace_table.hpp"
#include "simulation/fitting/family_fit.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// A replica that is slow for good.
struct slow_replica_fit {
  uint32_t replica = 0;
  double factor = 1; ///< Its median over that of a typical replica.
  double median_seconds = 0;
};

/// Consecutive draws that took longer than usual.
struct slow_period {
  uint32_t replica = 0; ///< No meaning if it is of all replicas.
  uint64_t first_draw = 0;
  uint64_t draw_count = 0;
  double seconds = 0; ///< All its draws together; of all replicas, a typical one's.
};

/// Slow periods of one kind.
struct slow_periods {
  std::vector<slow_period> list;
  double factor = 1;        ///< How many times as long their draws take as others.
  uint64_t usual_draws = 0; ///< Outside of them.

  /// "on_off(0.003, 0.01, 5)": the Markov chain with periods as frequent and as long, on average.
  [[nodiscard]] std::string expression() const;

  [[nodiscard]] double seconds() const;
};

/// The parts of a trace.
struct trace_fit {
  uint64_t time_count = 0;
  double median_seconds = 0; ///< A typical replica's.
  std::vector<slow_replica_fit> slow;
  slow_periods of_all; ///< All replicas are slow together.
  slow_periods of_one; ///< A replica is slow by itself.
  /// Ascending: times outside of slow periods; those of slow replicas over their factor.
  std::vector<double> usual;
  std::vector<family_fit> families; ///< Fitted to the usual times, the best first.

  /// The best family with slow periods and slow replicas, as `distribution::parse` reads it.
  [[nodiscard]] std::string expression() const;
};

/// Takes a trace apart.
///
/// - A replica is slow if its median is more than a quarter above the median of all medians, and
///   four standard errors of a sign test above it.
/// - A period is slow if so many draws in a row are long (of one replica: half as long again as its
///   median; of all: three of four replicas a quarter longer than in the median step) as chance
///   would hardly (1 in 100) give anywhere in the trace, if draws did not depend on each other.
/// - Periods of all replicas are looked for if there are at least three with as many draws.
[[nodiscard]] trace_fit fit_trace(const trace_table& table);

/// How long a step takes that waits for all replicas, on average.
struct step_comparison {
  double measured_seconds = 0; ///< The longest time of a draw in the trace.
  double fitted_seconds = 0;   ///< The same by an expression.
  /// They differ by more than a tenth, and their intervals of 95 % do not overlap.
  bool is_different = false;
};

/// A fit sees each replica by itself. It misses single draws that are slow for all replicas, and
/// slow periods that are too short to stand out; steps tell.
[[nodiscard]] step_comparison compare_steps(const trace_table& table, const distribution& compute);

} // namespace troupe
