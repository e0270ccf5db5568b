// SPDX-License-Identifier: Apache-2.0
// The variable cache: makes one question of many, and the value of its changes.
#include "actors/replication/variable_cache.hpp"

#include "kernels/tensor/change.hpp"
#include "messages/failure.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <utility>

namespace troupe {

namespace {

using variable_cache_pointer = observed_pointer<variable_owner_actor, variable_cache_state>;

tensor value_of(const msg<wire::VariableSnapshot>& snapshot) {
  return read_tensor(snapshot.reader().getValue(), snapshot.owner());
}

void answer(std::vector<variable_cache_state::promise> all,
            const expected<msg<wire::VariableSnapshot>>& what) {
  for (auto& one : all) {
    if (what)
      one.deliver(*what);
    else
      one.deliver(to_caf(what.error()));
  }
}

void ask(variable_cache_pointer self) {
  auto& state = self->state;
  state.asked = std::exchange(state.waiting, {});
  if (state.asked.empty()) return;
  auto before = state.known();
  auto settle = [self](const expected<msg<wire::VariableSnapshot>>& now) {
    answer(std::exchange(self->state.asked, {}), now);
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

/// Whatever it does not know is the owner's business.
template <class Reply, class Message>
caf::result<msg<Reply>> pass_on(variable_cache_pointer self, const Message& said) {
  const auto& state = self->state;
  if (state.lost) return to_caf(*state.lost);
  return self->delegate(state.config.owner, said);
}

caf::result<msg<wire::VariableSnapshot>> on_read(variable_cache_pointer self,
                                                 const msg<wire::ReadVariable>& wanted) {
  auto& state = self->state;
  if (state.lost || wanted.reader().getComponent() != whole_variable)
    return pass_on<wire::VariableSnapshot>(self, wanted);
  auto promise = self->make_response_promise<msg<wire::VariableSnapshot>>();
  state.waiting.push_back(promise);
  if (state.asked.empty()) ask(self);
  return promise;
}

// Later askers are told why, too; a cache that ended would have nothing to say.
void on_loss(variable_cache_pointer self, const caf::error& reason) {
  auto& state = self->state;
  state.lost = from_caf(reason);
  if (state.lost->code == errc::none)
    state.lost = error{errc::unavailable, "the owner of the variable is gone"};
  for (auto* all : {&state.asked, &state.waiting})
    answer(std::exchange(*all, {}), tl::unexpected<error>(*state.lost));
}

} // namespace

msg<wire::VariableSnapshot> variable_cache_state::known() const {
  auto latest = seen.lock();
  return latest ? msg<wire::VariableSnapshot>{std::move(latest)} : msg<wire::VariableSnapshot>{};
}

expected<msg<wire::VariableSnapshot>>
variable_cache_state::take(const msg<wire::VariableSnapshot>& before,
                           const msg<wire::VariableChanges>& changes) {
  auto said = changes.reader();
  auto what = read_gradient(said.getChange(), changes.owner());
  auto now = before;
  if (const auto* whole = what ? std::get_if<tensor>(&*what) : nullptr) {
    auto value = said.getByRows() ? whole->clone() : *whole;
    now = make_variable_snapshot(said.getVersion(), value);
  } else if (before.is_empty()) {
    return fail(errc::malformed, "changes of a variable that was never told");
  } else if (what) {
    const auto& rows = std::get<indexed_slices>(*what);
    auto patched = scattered(value_of(before), change::assign, rows);
    if (!patched) return fail(errc::malformed, patched.error().message);
    now = make_variable_snapshot(said.getVersion(), *patched);
  }
  kept = said.getByRows() ? now : msg<wire::VariableSnapshot>{};
  seen = now.owner();
  revision = said.getRevision();
  return now;
}

variable_owner_actor::behavior_type variable_cache(variable_cache_pointer self,
                                                   variable_cache_config config) {
  self->state.config = std::move(config);
  self->set_down_handler([self](const caf::down_msg& down) { on_loss(self, down.reason); });
  self->monitor(self->state.config.owner);
  return {
    [self](const msg<wire::ReadVariable>& wanted) { return on_read(self, wanted); },
    [self](const msg<wire::PullVariable>& said) {
      return pass_on<wire::VariableChanges>(self, said);
    },
    [self](const msg<wire::ChangeVariable>& said) {
      return pass_on<wire::VariableSnapshot>(self, said);
    },
    [self](const msg<wire::FollowOwner>& said) { return pass_on<wire::OwnerFollowed>(self, said); },
    [self](const msg<wire::ReadAverage>& said) {
      return pass_on<wire::VariableSnapshot>(self, said);
    },
    [self](const msg<wire::UseOptimizer>& said) {
      return pass_on<wire::OptimizerInUse>(self, said);
    },
    [self](const msg<wire::ApplyUpdate>& said) { return pass_on<wire::UpdateApplied>(self, said); },
    [self](const msg<wire::ReleaseUpdate>& said) {
      return pass_on<wire::UpdateApplied>(self, said);
    },
    [self](const msg<wire::ReadState>& said) { return pass_on<wire::VariableState>(self, said); },
    [self](const msg<wire::RestoreState>& said) {
      return pass_on<wire::OptimizerInUse>(self, said);
    },
  };
}

} // namespace troupe
