// SPDX-License-Identifier: Apache-2.0
// One actor that answers for a group: answers are combined where the members are.
#pragma once

#include "actors/groups/group.hpp"
#include "actors/observing/observed.hpp"

#include <caf/typed_actor.hpp>
#include <caf/typed_response_promise.hpp>

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The handle of a deputy, which answers the same messages as a member.
template <class Message, class Reply>
using deputy_actor = caf::typed_actor<typename caf::replies_to<Message>::template with<Reply>>;

/// Combines the answers that count, given in the order of members, into one.
template <class Reply>
using combine_function = std::function<expected<Reply>(std::vector<Reply>)>;

struct deputy_state {
  static inline const char* name = "deputy";
};

/// With one deputy for the members of each process, a question to all members is one message to
/// each process, and one back. The group of the deputies is asked, and its answers are combined
/// again.
/// @param members The members in the deputy's process. @param options How it asks them.
/// Errors: answers with `group_report::why_not_enough`, or with what `combine` returns or throws.
template <class Message, class Reply, class Handle>
[[nodiscard]] typename deputy_actor<Message, Reply>::behavior_type
deputy(observed_pointer<deputy_actor<Message, Reply>, deputy_state> self, group<Handle> members,
       combine_function<Reply> combine, group_options options) {
  return {[self, members, combine, options](const Message& question) {
    auto answer = self->template make_response_promise<Reply>();
    auto asking = members.template ask<Reply>(question, options);
    asking.then(self, [answer, combine](const expected<group_answers<Reply>>& answers) {
      auto combined = answers.and_then([&combine](const auto& all) -> expected<Reply> {
        if (!all.is_enough()) return tl::unexpected<error>(all.why_not_enough());
        try {
          return combine(all.counted());
        } catch (...) {
          return tl::unexpected<error>(reason_of(std::current_exception()));
        }
      });
      deliver(answer, std::move(combined));
    });
    return answer;
  }};
}

/// Spawns a deputy, known to observers as "deputy <name>". It ends when it is told to exit.
/// Errors: throws `failure` with invalid_argument for options that no question can have.
template <class Message, class Reply, class Handle>
[[nodiscard]] deputy_actor<Message, Reply>
spawn_deputy(const std::string& name, group<Handle> members, combine_function<Reply> combine,
             group_options options = {}) {
  members.check(options);
  auto& world = members.world();
  auto result = world.system().spawn(deputy<Message, Reply, Handle>, std::move(members),
                                     std::move(combine), std::move(options));
  world.introduce(result.id(), "deputy " + name);
  return result;
}

} // namespace troupe
