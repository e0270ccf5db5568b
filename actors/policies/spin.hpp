// SPDX-License-Identifier: Apache-2.0
// Decides how long a thread that waits for messages looks for them before it sleeps.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe {

/// The processors of its machine that a process may use.
struct processor_facts {
  uint32_t processors = 1;       ///< The processors that it may run on.
  std::optional<double> quota{}; ///< Processors that it may use on average; none: no limit.
};

/// The facts of this process, by its affinity and the smallest quota of its control groups.
[[nodiscard]] processor_facts processors_of_this_process();

/// The quota of a control group; nothing if there is no limit, or `cpu_max` is something else.
/// Units: processors. @param cpu_max Its quota and period, as in its `cpu.max`: "150000 100000" is
/// 1.5.
[[nodiscard]] std::optional<double> quota_of(std::string_view cpu_max);

/// The bound of a `spin_policy`, if the user gives none. 0 on one processor, where peers run only
/// if this process does not. 0 also under a quota that is less than the processors, where a process
/// that has looked is stopped later, when it has something to do.
[[nodiscard]] std::chrono::microseconds usual_spin(const processor_facts& facts);

/// To wake a thread takes 25 to 60 us on a virtual machine, so a thread that sleeps between short
/// messages spends its time on that; one that looks for the next message has it in 2. But a thread
/// that looks keeps a processor from threads that have something to do. So it looks for a bounded
/// time, offers its processor to others after each look, and pauses where looking is of no use:
/// - after looks that found nothing, for 1, 3, 7, ... and at most 63 waits, until a message comes
///   so soon that a look would have found it;
/// - if another thread kept its processor for a millisecond, as those do that compute and do not
///   wait, for 16 ms, and twice as long, up to 1 s, if that is so again.
///
/// Thread: one at a time.
class spin_policy {
public:
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  /// @param bound How long the thread may look in each wait; 0: it never looks.
  explicit spin_policy(duration bound) : bound_(bound) {}

  /// A wait begins. @returns Whether to look before the thread sleeps.
  [[nodiscard]] bool begins(time_point now);

  /// A look has found nothing, and the thread has offered its processor to others.
  /// @returns Whether to look again.
  [[nodiscard]] bool goes_on(time_point now);

  /// A look has found something.
  void has_found() { fruitless_ = 0; }

  /// Something has come after the thread had slept for that time.
  void has_slept(duration slept);

private:
  void lose_processor(time_point now);

  duration bound_;
  time_point looked_{};         ///< When the last look ended.
  duration spent_{0};           ///< Time spent in this wait.
  uint32_t fruitless_ = 0;      ///< Waits in a row in which nothing was found.
  uint32_t skipped_ = 0;        ///< Waits in which the thread is to sleep at once.
  duration pause_{0};           ///< The length of the last pause.
  time_point is_alone_at_ = {}; ///< When the last pause ends.
};

} // namespace troupe
