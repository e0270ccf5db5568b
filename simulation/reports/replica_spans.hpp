// SPDX-License-Identifier: Apache-2.0
// The replicas' states over some steps of a run, for timelines and heat maps.
#pragma once

#include "actors/recording/records.hpp"
#include "simulation/reports/gradient_trips.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe {

/// The state of a replica.
enum class replica_state_kind : uint8_t {
  accepted,  ///< Computing a gradient that counted.
  stale,     ///< Computing one that came too late.
  cancelled, ///< Computing until it was told to stop.
  reading,   ///< Waiting for the variables, where messages take time.
  sending,   ///< Its gradient is on its way, or waits to be served.
  waiting,   ///< Waiting for a token.
  absent,    ///< Down, or at something that no gradient tells of.
};

/// The kind's name, as legends and files spell it.
[[nodiscard]] constexpr std::string_view to_string(replica_state_kind kind) {
  constexpr std::string_view names[]
    = {"computing", "dropped work",        "cancelled work", "reading",
       "sending",   "waiting for a token", "not there"};
  return names[static_cast<size_t>(kind)];
}

/// One stretch of a replica's time.
struct replica_span {
  uint32_t replica = 0;
  replica_state_kind what = replica_state_kind::accepted;
  job_time start{0};
  job_time end{0};
  uint64_t step = 0; ///< That it worked for, counted from 1.
};

/// Steps that are looked at.
struct step_window {
  uint64_t first = 1; ///< Counted from 1.
  uint64_t count = 1;
};

/// Collects a window of the steps of one run. Memory: what the window holds, not the run.
class replica_spans {
public:
  replica_spans(uint32_t replicas, step_window window)
    : replicas_(replicas), window_(window), trips_(replicas) {}

  /// Takes in one step of the run, in order. A gradient begun in the window counts if it comes
  /// within `steps_awaited` steps after it. Steps that a job makes again, because it went on from a
  /// snapshot, lie within the step that comes after them.
  void add(const step_record& step);

  /// Takes in a message between nodes, before the step that its gradient is told in. Without them
  /// a gradient seems to have been computed until it came.
  void add(const delivery& delivery);

  static constexpr uint64_t steps_awaited = 100; ///< Steps.

  /// When each step of the window ended; the first entry is when the first one began. Empty if the
  /// run did not come so far.
  [[nodiscard]] const std::vector<job_time>& bounds() const { return bounds_; }

  /// The number of the first step of the window.
  [[nodiscard]] uint64_t first_step() const { return window_.first; }

  [[nodiscard]] uint32_t replica_count() const { return replicas_; }

  /// As they were, in no order; some reach beyond the window, and what was dropped at the moment at
  /// which it was cancelled is there twice.
  [[nodiscard]] const std::vector<replica_span>& all() const { return spans_; }

  /// All spans, by replica and then in order, cut at the window's ends and without gaps: what
  /// nothing is known of is `absent`.
  [[nodiscard]] std::vector<replica_span> spans() const;

private:
  [[nodiscard]] uint64_t window_end() const { return window_.first + window_.count; }

  /// The step of the window whose end is not known yet.
  [[nodiscard]] uint64_t next_step() const {
    return window_.first + (bounds_.empty() ? 0 : bounds_.size() - 1);
  }

  [[nodiscard]] bool is_behind() const { return last_step_ + 1 >= window_end() + steps_awaited; }

  void look_at(const step_record& step);
  void add(const contribution& gradient, replica_state_kind verdict);
  void keep(replica_span span);
  [[nodiscard]] replica_state_kind gap(job_time start, job_time end) const;

  uint32_t replicas_;
  step_window window_;
  uint64_t last_step_ = 0;
  gradient_trips trips_; ///< That steps may still tell of.
  std::vector<job_time> bounds_;
  std::vector<replica_span> spans_;
};

/// How many times as long as usual each replica took for a gradient: for every step of the window
/// it was at that gradient.
struct slow_down_map {
  uint64_t first_step = 0;
  uint32_t replicas_per_row = 1; ///< Above 1 if there are more than `rows_max`.
  double usual_seconds = 0;      ///< The median over all gradients that count or came too late.
  /// `[row][step]`: the slowest replica of the row. NaN where no replica of the row computed;
  /// below 0 where the slowest was told to stop after so long.
  std::vector<std::vector<float>> rows;

  static constexpr uint32_t rows_max = 100;
};

/// The map of a window.
[[nodiscard]] slow_down_map slow_down_of(const replica_spans& spans);

} // namespace troupe
