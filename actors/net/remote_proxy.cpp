// SPDX-License-Identifier: Apache-2.0
// Where a message leaves its node.
#include "actors/net/remote_proxy.hpp"

#include "actors/interfaces/caf_compat.hpp"
#include "actors/net/node.hpp"

#include <caf/sec.hpp>

#include <typeinfo>
#include <utility>

namespace troupe {

namespace {

// CAF would say that the receiver is down; if its node is gone, there is more to know.
caf::error why_unanswered(const caf::error& reason) {
  return is_lost_node(reason) ? reason : caf::sec::request_receiver_down;
}

void refuse(const caf::mailbox_element& request, caf::error reason) {
  if (request.mid.is_request() && request.sender)
    request.sender->enqueue(nullptr, request.mid.response_id(),
                            caf::make_message(std::move(reason)), nullptr);
}

} // namespace

void remote_proxy::enqueue(caf::mailbox_element_ptr element, caf::execution_unit* /*host*/) {
  if (getf(is_terminated_flag)) return refuse(*element, why_unanswered(fail_state()));
  if (auto home = home_.lock()) return home->send(stands_for_, *element);
  refuse(*element, caf::sec::request_receiver_down);
}

// Each message asks this twice, and a dynamic_cast through the bases of CAF's actors takes 900
// instructions.
const actor_address* original_of(const caf::strong_actor_ptr& actor) {
  const auto& known = *actor->get();
  if (typeid(known) != typeid(remote_proxy)) return nullptr;
  return &static_cast<const remote_proxy&>(known).stands_for();
}

void remote_proxy::kill_proxy(caf::execution_unit* host, caf::error reason) {
  cleanup(std::move(reason), host);
}

} // namespace troupe
