// SPDX-License-Identifier: Apache-2.0
// Where a message leaves its node.
#include "actors/net/remote_proxy.hpp"

#include "actors/net/node.hpp"

#include <caf/sec.hpp>

#include <utility>

namespace troupe {

void remote_proxy::enqueue(caf::mailbox_element_ptr what, caf::execution_unit* /*host*/) {
  if (getf(is_terminated_flag)) return bounce(what, fail_state());
  if (auto home = home_.lock()) return home->send(stands_for_, *what);
  bounce(what, caf::sec::request_receiver_down);
}

void remote_proxy::kill_proxy(caf::execution_unit* host, caf::error reason) {
  cleanup(std::move(reason), host);
}

} // namespace troupe
