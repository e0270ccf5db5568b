// SPDX-License-Identifier: Apache-2.0
// Jobs of a `multi_worker_mirrored_strategy`, drawn from a seed with all that goes wrong in them.
#pragma once

#include "actors/interfaces/job_snapshot.hpp"
#include "kernels/tensor/tensor.hpp"
#include "kernels/updates/rules/descent.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::test {

/// Kinds of trouble that one process can have.
enum class trouble_kind : uint8_t {
  crash,     ///< It is gone.
  freeze,    ///< Nothing enters or leaves it for a while.
  partition, ///< It and some others are cut off from the rest for a while.
  unheard,   ///< It hears others, which do not hear it for a while.
  slow,      ///< Its messages take many times as long, for a while.
  leaves,    ///< Its program ends before the job is over.
  throws,    ///< The function of one of its replicas does.
  stops,     ///< It is asked to stop.
  late,      ///< It begins later than the others.
  absent,    ///< It never begins.
};

inline constexpr size_t trouble_kind_count = 10;

[[nodiscard]] const char* to_string(trouble_kind kind);

struct meeting_trouble {
  trouble_kind kind = trouble_kind::crash;
  uint32_t who = 0;          ///< By rank.
  std::set<uint32_t> with{}; ///< A partition: the others on its side.
  job_time at{0};            ///< When it begins; late: when the process does.
  job_time length{0};        ///< How long it lasts, if it passes.
  uint64_t step = 0;         ///< throws: amid which step.
  uint32_t factor = 1;       ///< slow: how many times.

  /// Whether processes that do not hear each other meanwhile give each other up, if it is in their
  /// way at all.
  [[nodiscard]] bool is_silence() const {
    return kind == trouble_kind::freeze || kind == trouble_kind::partition
           || kind == trouble_kind::unheard;
  }
};

/// A job, as all its processes know it, and what is to happen to it.
struct meeting_plan {
  uint64_t seed = 0;
  uint32_t processes = 2;
  uint32_t replicas_each = 1;
  uint64_t steps = 1;       ///< Steps of the whole job.
  uint64_t first_steps = 0; ///< Made by a first call of `train`, if it is two; 0: it is one.
  uint64_t save_every = 1;
  bool counts_on_read = false; ///< Whether there is a variable that is synchronised on read.
  job_time compute_max{0};     ///< Longest computation of a replica's step.
  job_time latency_max{0};
  job_time detection{0};
  std::vector<meeting_trouble> troubles;
  std::optional<job_snapshot> resume;

  static constexpr job_time silence_timeout = std::chrono::seconds{2};
  static constexpr job_time start_deadline = std::chrono::seconds{5};
  static constexpr job_time deadline = std::chrono::seconds{20}; ///< The strategy's.

  [[nodiscard]] uint32_t replicas() const { return processes * replicas_each; }

  /// In a line, for people.
  [[nodiscard]] std::string describe() const;
};

/// The values of the variables that the jobs train: "w" and "b".
using meeting_values = std::vector<tensor>;

[[nodiscard]] bool is_equal(const tensor& a, const tensor& b);

/// The values of the variables before the first step.
[[nodiscard]] meeting_values first_values();

/// The gradients that a replica computes from the variables in one of its iterations.
[[nodiscard]] meeting_values meeting_gradients(const meeting_plan& plan, const meeting_values& at,
                                               uint32_t replica, uint64_t iteration);

inline constexpr rules::momentum meeting_rule{.learning_rate = 0.125};

/// Draws a job. The same seed gives the same one.
[[nodiscard]] meeting_plan draw_meeting(uint64_t seed);

/// Computes a job in a plain loop. @returns The variables after each step, from 0 on.
[[nodiscard]] std::vector<meeting_values> serial_meeting(const meeting_plan& plan);

} // namespace troupe::test
