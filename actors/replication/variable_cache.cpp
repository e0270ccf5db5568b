// SPDX-License-Identifier: Apache-2.0
// The variable cache asks its owner once for many readers, and patches the value by its changes.
#include "actors/replication/variable_cache.hpp"

#include "kernels/tensor/change.hpp"
#include "messages/errors/failure.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <utility>

namespace troupe {

namespace {

using variable_cache_pointer = observed_pointer<variable_owner_actor, variable_cache_state>;

tensor value_of(const msg<wire::VariableSnapshot>& snapshot) {
  return read_tensor(snapshot.reader().getValue(), snapshot.owner());
}

void answer(std::vector<variable_cache_state::promise> readers,
            const expected<msg<wire::VariableSnapshot>>& value) {
  for (auto& reader : readers)
    deliver(reader, value);
}

void ask(variable_cache_pointer self) {
  auto& state = self->state;
  state.asked = std::exchange(state.waiting, {});
  if (state.asked.empty()) return;
  auto before = state.known();
  auto settle = [self](const expected<msg<wire::VariableSnapshot>>& value) {
    answer(std::exchange(self->state.asked, {}), value);
    ask(self);
  };
  self
    ->request(state.config.owner, caf::infinite, // the node answers for one that is gone
              make_pull_variable(before.is_empty() ? 0 : state.revision))
    .then(
      [self, settle, before](const msg<wire::VariableChanges>& changes) {
        settle(self->state.take(before, changes));
      },
      [settle](const caf::error& reason) { settle(tl::unexpected<error>(from_caf(reason))); });
}

// Has the owner answer a request that the cache cannot.
template <class Reply, class Message>
caf::result<msg<Reply>> pass_on(variable_cache_pointer self, const msg<Message>& request) {
  const auto& state = self->state;
  if (state.lost) return to_caf(*state.lost);
  return self->delegate(state.config.owner, request);
}

// A handler that passes requests on.
template <class Message, class Reply>
auto passes(variable_cache_pointer self) {
  return [self](const msg<Message>& request) { return pass_on<Reply>(self, request); };
}

caf::result<msg<wire::VariableSnapshot>> on_read(variable_cache_pointer self,
                                                 const msg<wire::ReadVariable>& request) {
  auto& state = self->state;
  if (state.lost || request.reader().getComponent() != whole_variable)
    return pass_on<wire::VariableSnapshot>(self, request);
  auto promise = self->make_response_promise<msg<wire::VariableSnapshot>>();
  state.waiting.push_back(promise);
  if (state.asked.empty()) ask(self);
  return promise;
}

// The owner is gone. The cache stays, to tell later readers why.
void on_loss(variable_cache_pointer self, const caf::error& reason) {
  auto& state = self->state;
  state.lost = from_caf(reason);
  if (state.lost->code == errc::none)
    state.lost = error{errc::unavailable, "the owner of the variable is gone"};
  for (auto* readers : {&state.asked, &state.waiting})
    answer(std::exchange(*readers, {}), tl::unexpected<error>(*state.lost));
}

} // namespace

msg<wire::VariableSnapshot> variable_cache_state::known() const {
  auto latest = seen.lock();
  return latest ? msg<wire::VariableSnapshot>{std::move(latest)} : msg<wire::VariableSnapshot>{};
}

expected<msg<wire::VariableSnapshot>>
variable_cache_state::take(const msg<wire::VariableSnapshot>& before,
                           const msg<wire::VariableChanges>& changes) {
  auto body = changes.reader();
  auto content = read_gradient(body.getChange(), changes.owner());
  auto after = before;
  if (const auto* whole = content ? std::get_if<tensor>(&*content) : nullptr) {
    auto value = body.getByRows() ? whole->clone() : *whole;
    after = make_variable_snapshot(body.getVersion(), value);
  } else if (before.is_empty()) {
    return fail(errc::malformed, "changes of a variable that was never told");
  } else if (content) {
    const auto& rows = std::get<indexed_slices>(*content);
    auto patched = scattered(value_of(before), change::assign, rows);
    if (!patched) return fail(errc::malformed, patched.error().message);
    after = make_variable_snapshot(body.getVersion(), *patched);
  }
  kept = body.getByRows() ? after : msg<wire::VariableSnapshot>{};
  seen = after.owner();
  revision = body.getRevision();
  return after;
}

variable_owner_actor::behavior_type variable_cache(variable_cache_pointer self,
                                                   variable_cache_config config) {
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) { on_loss(self, down.reason); });
  self->monitor(self->state.config.owner);
  return {
    [self](const msg<wire::ReadVariable>& request) { return on_read(self, request); },
    passes<wire::PullVariable, wire::VariableChanges>(self),
    passes<wire::ChangeVariable, wire::VariableSnapshot>(self),
    passes<wire::FollowOwner, wire::OwnerFollowed>(self),
    passes<wire::ReadAverage, wire::VariableSnapshot>(self),
    passes<wire::UseOptimizer, wire::OptimizerInUse>(self),
    passes<wire::ApplyUpdate, wire::UpdateApplied>(self),
    passes<wire::ReleaseUpdate, wire::UpdateApplied>(self),
    passes<wire::ReadState, wire::VariableState>(self),
    passes<wire::RestoreState, wire::OptimizerInUse>(self),
  };
}

} // namespace troupe
