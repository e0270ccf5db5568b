// SPDX-License-Identifier: Apache-2.0
// The end of a device's actor, as the actors that ask it know it.
#pragma once

#include <caf/error.hpp>
#include <caf/sec.hpp>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace troupe {

/// A device's actor may end before it comes to a request. The request then bounces without the
/// reason of the end, which only monitors get, before or after that. So an actor that asks a device
/// monitors it, and refuses its own callers with that reason.
///
/// Thread: that of the actor.
class device_end {
public:
  using teller = std::function<void(const caf::error&)>;

  /// Whether the device's actor has ended.
  [[nodiscard]] bool has_come() const { return reason_.has_value(); }

  /// The device's actor has ended.
  void come(const caf::error& reason) {
    reason_ = reason;
    for (const auto& tell : std::exchange(bounced_, {}))
      tell(reason);
  }

  /// A request has failed. @param tell Called once with the reason, as soon as that is known.
  void explain(const caf::error& failure, const teller& tell) {
    if (failure != caf::sec::request_receiver_down) return tell(failure);
    auto tell_end = [tell, failure](const caf::error& reason) { tell(reason ? reason : failure); };
    if (reason_) return tell_end(*reason_);
    bounced_.emplace_back(tell_end);
  }

private:
  std::optional<caf::error> reason_;
  std::vector<teller> bounced_; ///< Requests that wait for the reason.
};

} // namespace troupe
