// SPDX-License-Identifier: Apache-2.0
// Passing messages on to the actor, and its answers back to the askers.
#include "actors/supervision/supervised_proxy.hpp"

#include "actors/interfaces/caf_compat.hpp"

#include <caf/mailbox_element.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace troupe {

namespace {

void answer_with(const caf::strong_actor_ptr& asker, caf::message_id number,
                 const caf::error& why) {
  if (asker) asker->enqueue(nullptr, number.response_id(), caf::make_message(why), nullptr);
}

} // namespace

supervised_proxy::supervised_proxy(caf::actor_config& config, std::function<void()> on_exit)
  : caf::monitorable_actor(config), on_exit_(std::move(on_exit)),
    why_(to_caf({errc::unavailable, "the actor has not begun yet"})) {}

void supervised_proxy::enqueue(caf::mailbox_element_ptr message, caf::execution_unit* host) {
  if (message->mid.is_response()) return hand_back(*message, host);
  if (message->content().match_elements<caf::exit_msg>()) return on_exit_();
  std::unique_lock guard{mutex_};
  auto actor = actor_;
  if (!actor) {
    auto why = why_;
    guard.unlock();
    if (message->mid.is_request()) answer_with(message->sender, message->mid, why);
    return;
  }
  if (!message->mid.is_request()) {
    guard.unlock();
    actor->get()->enqueue(std::move(message), host);
    return;
  }
  auto number = ++count_;
  open_.emplace(number, question{message->sender, message->mid});
  guard.unlock();
  actor->enqueue(ctrl(), caf::message_id{number}.with_category(message->mid.category()),
                 message->move_content_to_message(), host);
}

void supervised_proxy::hand_back(caf::mailbox_element& answer, caf::execution_unit* host) {
  std::unique_lock guard{mutex_};
  auto open = open_.extract(answer.mid.request_id().integer_value());
  guard.unlock();
  if (!open || !open.mapped().asker) return; // it was answered when the actor ended
  const auto& [asker, number] = open.mapped();
  auto content = answer.move_content_to_message();
  if (content.match_elements<caf::error>()
      && content.get_as<caf::error>(0) == caf::sec::request_receiver_down)
    return answer_with(asker, number,
                       to_caf({errc::unavailable, "it ended before it came to the question"}));
  asker->enqueue(ctrl(), number.response_id(), std::move(content), host);
}

void supervised_proxy::bind(caf::strong_actor_ptr actor) {
  std::lock_guard guard{mutex_};
  actor_ = std::move(actor);
}

void supervised_proxy::unbind(const error& why) {
  std::vector<std::pair<uint64_t, question>> unanswered;
  {
    std::lock_guard guard{mutex_};
    actor_ = nullptr;
    why_ = to_caf(why);
    unanswered.assign(open_.begin(), open_.end());
    open_.clear();
  }
  // Answers go in the order of the questions, so that runs in virtual time repeat.
  std::ranges::sort(unanswered, {}, [](const auto& item) { return item.first; });
  for (const auto& [number, question] : unanswered)
    answer_with(question.asker, question.number, to_caf(why));
}

void supervised_proxy::end(const error& why, caf::error reason) {
  unbind(why);
  cleanup(std::move(reason), nullptr);
}

} // namespace troupe
