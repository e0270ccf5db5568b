// SPDX-License-Identifier: Apache-2.0
// Waits for the outcome of a closure.
#include "strategies/coordinator/remote_value.hpp"

#include "actors/world/completion.hpp"
#include "strategies/coordinator/closure_waiter.hpp"

namespace troupe {

void closure_outcome::settle(expected<std::vector<closure_value>> result) {
  std::vector<std::function<void()>> told;
  {
    std::lock_guard guard{mutex_};
    if (result_) return;
    result_ = std::move(result);
    told = std::exchange(waiting_, {});
  }
  for (const auto& tell : told)
    tell();
}

bool closure_outcome::is_settled() const {
  std::lock_guard guard{mutex_};
  return result_.has_value();
}

const std::vector<closure_value>& closure_outcome::wait(world& world) {
  check_may_wait("fetch");
  completion<void> settled;
  {
    std::lock_guard guard{mutex_};
    if (result_)
      settled({});
    else
      waiting_.emplace_back([settled] { settled({}); });
  }
  value_or_throw(waiter_ ? waiter_->wait(world, settled.known()) : settled.wait(world));
  if (!*result_) throw failure{result_->error()};
  return **result_; // it is written no more
}

} // namespace troupe
