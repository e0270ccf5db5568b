// SPDX-License-Identifier: Apache-2.0
// Tells losses from their consequences, and counts the former.
#include "tools/launch/restart_budget.hpp"

namespace troupe {

restart_budget::answer restart_budget::take(task_end end, duration time,
                                            std::optional<duration> restarted_at) {
  auto is_recent
    = [&](std::optional<duration> past) { return past && time - *past <= consequence_time_; };
  // A task that ends because another one is missing says so by its exit code; a task that is
  // killed, or that fails after its own restart, is another loss.
  auto is_consequence = end.signal == 0 && is_recent(counted_at_)
                        && (end.misses_others() || !is_recent(restarted_at));
  if (is_consequence) return answer::uncounted;
  if (left_ == 0) return answer::refused;
  --left_;
  counted_at_ = time;
  return answer::counted;
}

bool restart_budget::take_for_evaluator() {
  if (left_for_evaluators_ == 0) return false;
  --left_for_evaluators_;
  return true;
}

} // namespace troupe
