// SPDX-License-Identifier: Apache-2.0
// The variable owner: reading, choosing the optimizer, applying updates.
#include "actors/variable_owner.hpp"

#include "actors/optimizer_settings.hpp"
#include "messages/assert.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

using self_pointer = observed_pointer<replicated_owner_actor, variable_owner_state>;

const error taken_over{errc::cancelled, "its mirror has taken over"};

// The gradients of an update where they lie; checked again, since they may come from another node.
expected<std::vector<gradient>> gradients_of(const msg<wire::ApplyUpdate>& update,
                                             const variable_form& variable) {
  auto given = update.reader().getGradients();
  std::vector<gradient> gradients;
  gradients.reserve(given.size());
  for (auto gradient : given) {
    if (auto fits = check_gradient(variable, gradient); !fits)
      return tl::unexpected<error>(fits.error());
    gradients.push_back(to_gradient(read_gradient(gradient, update.owner())));
  }
  return gradients;
}

// Whoever restores a variable that is trained is to say how it is updated from then on: what was
// restored may be of another optimizer.
expected<void> check_slots(const update_plan& plan, const variable_state& variable,
                           const std::string& name) {
  if (variable.slots.size() == slot_count(plan.rule)) return {};
  return fail(errc::failed_precondition,
              fmt::format("variable '{}' was restored with {} slots, its optimizer has {}; send "
                          "UseOptimizer again",
                          name, variable.slots.size(), slot_count(plan.rule)));
}

// An array that was saved, in memory of its own.
expected<tensor> restored(const variable_form& variable, const std::string& name,
                          tensor_payload saved) {
  auto value = to_tensor(std::move(saved));
  if (value.type() != variable.type)
    return fail(errc::type_mismatch,
                fmt::format("'{}' was saved as {}, but variable '{}' is {}", name,
                            to_string(value.type()), variable.name, to_string(variable.type)));
  if (value.extents() != variable.extents)
    return fail(errc::invalid_argument,
                fmt::format("'{}' was saved with shape {}, but variable '{}' has shape {}", name,
                            to_string(value.extents()), variable.name,
                            to_string(variable.extents)));
  return value.clone();
}

// ---- answering at the right place ----

void become_certain(variable_owner_state& state) {
  state.is_certain = true;
  for (const auto& answer : std::exchange(state.early, {}))
    answer();
}

// Whoever asks another than the one who holds the variable is told who that is, and asks there.
template <class Reply, class Read>
expected<msg<Reply>> read_if_held(variable_owner_state& state, Read read) {
  if (state.holds()) return read(state);
  return fail(errc::unavailable,
              fmt::format("'{}' is held by another", state.config.variable.name));
}

// @param read `expected<msg<Reply>> read(variable_owner_state&)`.
template <class Reply, class Read>
caf::result<msg<Reply>> answer(self_pointer self, Read read) {
  if (self->state.is_certain) return to_result(read_if_held<Reply>(self->state, read));
  auto promise = self->make_response_promise<msg<Reply>>();
  self->state.early.emplace_back([self, promise, read]() mutable {
    auto answer = read_if_held<Reply>(self->state, read);
    answer ? promise.deliver(std::move(*answer)) : promise.deliver(to_caf(answer.error()));
  });
  return promise;
}

// ---- telling the mirror ----

void go_on_alone(variable_owner_state& state) {
  state.mirror = nullptr;
  become_certain(state);
  for (auto& change : std::exchange(state.changes, {}))
    change.settle(std::nullopt);
}

// Another holds the variable: what was changed here since is not part of it.
void step_down(variable_owner_state& state) {
  state.is_deposed = true;
  become_certain(state);
  for (auto& change : std::exchange(state.changes, {}))
    change.settle(error{errc::unavailable, taken_over.message});
}

// Whether the mirror takes over, which is behind from now on, is not to be decided here.
void miss_mirror(self_pointer self, const replicated_owner_actor& mirror) {
  const auto& config = self->state.config;
  auto missed = make_miss_mirror(config.variable_index);
  self
    ->request(config.directory, caf::infinite, missed) // it answers, or the job is over
    .then(
      [self, mirror](const msg<wire::OwnerFollowed>&) {
        if (mirror == self->state.mirror) go_on_alone(self->state);
      },
      [self](const caf::error&) { step_down(self->state); });
}

// Whoever is refused by a mirror that holds the variable has lost it. What a former mirror says is
// late.
void on_made(self_pointer self, const replicated_owner_actor& mirror,
             const std::optional<error>& reason) {
  auto& state = self->state;
  if (mirror != state.mirror) return;
  if (reason) return reason->code == taken_over.code ? step_down(state) : miss_mirror(self, mirror);
  become_certain(state);
  auto first = std::move(state.changes.front());
  state.changes.pop_front();
  first.settle(std::nullopt);
  if (!state.changes.empty()) state.changes.front().tell();
}

template <class Reply, class Message>
void tell_mirror(self_pointer self, msg<Message> told,
                 std::function<void(const std::optional<error>&)> settle) {
  auto tell = [self, mirror = self->state.mirror, told = std::move(told)] {
    self
      ->request(mirror, caf::infinite, told) // the mirror answers, or is gone
      .then([self, mirror](const msg<Reply>&) { on_made(self, mirror, std::nullopt); },
            [self, mirror](const caf::error& reason) { on_made(self, mirror, from_caf(reason)); });
  };
  self->state.changes.push_back({std::move(tell), std::move(settle)});
  if (self->state.changes.size() == 1) self->state.changes.front().tell();
}

// The answer to a change that was made here, when the mirror has made it, too.
template <class Reply, class Message>
caf::result<msg<Reply>> mirrored(self_pointer self, const msg<Message>& told,
                                 expected<msg<Reply>> answer) {
  if (!answer || !self->state.mirror) return to_result(std::move(answer));
  auto promise = self->make_response_promise<msg<Reply>>();
  tell_mirror<Reply>(self, told,
                     [promise, answer = std::move(*answer)](const auto& refused) mutable {
                       refused ? promise.deliver(to_caf(*refused)) : promise.deliver(answer);
                     });
  return promise;
}

bool is_former_owner(self_pointer self) {
  const auto& state = self->state;
  return state.has_taken_over
         && self->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(state.config.mirrored);
}

// @param make A method of the state.
template <class Reply, class Message>
caf::result<msg<Reply>>
change_by(self_pointer self, const msg<Message>& wanted,
          expected<msg<Reply>> (variable_owner_state::*make)(const msg<Message>&)) {
  if (is_former_owner(self)) return to_caf(taken_over);
  return mirrored(self, wanted, (self->state.*make)(wanted));
}

// The mirror is told what is fewer bytes; an update that is held has changed nothing yet.
caf::result<msg<wire::UpdateApplied>> apply(self_pointer self,
                                            const msg<wire::ApplyUpdate>& update) {
  auto& state = self->state;
  if (is_former_owner(self)) return to_caf(taken_over);
  auto answer = state.apply(update);
  if (!state.mirror || !answer || !state.closed || update.reader().getHold())
    return mirrored(self, update, std::move(answer));
  auto outcome = state.told_state();
  auto is_smaller = outcome.reader().totalSize().wordCount < update.reader().totalSize().wordCount;
  return is_smaller ? mirrored(self, outcome, std::move(answer))
                    : mirrored(self, update, std::move(answer));
}

void tell_directory(self_pointer self);

// Only its owner tells a mirror what to hold, and only until it takes over: an owner that has begun
// a new life in the same place knows nothing of what has become of the variable.
caf::result<msg<wire::UpdateApplied>> repeat(self_pointer self,
                                             const msg<wire::MirrorState>& told) {
  const auto& state = self->state;
  auto is_owner
    = self->current_sender() == caf::actor_cast<caf::strong_actor_ptr>(state.config.mirrored);
  if (state.has_taken_over || !is_owner) return to_caf(taken_over);
  auto done = self->state.mirror_state(told);
  if (done) tell_directory(self);
  return to_result(std::move(done));
}

// The state comes last: with it the mirror may take over. Whoever waits for a former mirror, which
// is gone, waits no more.
void use(self_pointer self, const replicated_owner_actor& mirror) {
  auto& state = self->state;
  for (auto& change : std::exchange(state.changes, {}))
    change.settle(std::nullopt);
  state.mirror = mirror;
  auto nobody_waits = [](const std::optional<error>&) {};
  if (!state.optimizer.is_empty())
    tell_mirror<wire::OptimizerInUse>(self, state.optimizer, nobody_waits);
  if (!state.held.is_empty()) tell_mirror<wire::UpdateApplied>(self, state.held, nobody_waits);
  tell_mirror<wire::UpdateApplied>(self, state.told_state(), nobody_waits);
}

void repeat_to_sender(self_pointer self) {
  if (self->state.holds())
    use(self, caf::actor_cast<replicated_owner_actor>(self->current_sender()));
}

void use(self_pointer self, const accumulator_actor& accumulator) {
  self->state.accumulator = accumulator;
  self
    ->request(accumulator, caf::infinite, make_read_accumulator()) // it stands in this process
    .then(
      [self](const msg<wire::AccumulatorStatus>& status) {
        self->state.first_step = status.reader().getStep();
      },
      [](const caf::error&) {});
}

// ---- coming back ----

template <class Then>
void offer(self_pointer self, const come_back& told, bool is_filled, Then then) {
  const auto& config = self->state.config;
  auto offered = make_offer_mirror(config.variable_index, told.is_mirrors, is_filled);
  self
    ->request(config.directory, caf::infinite, offered) // it answers, or the job is over
    .then([then](const msg<wire::OwnerFollowed>&) { then(); }, [](const caf::error&) {});
}

// A new life has known of no return yet, and has told the mirror what it began with.
void return_as_mirror(self_pointer self, const come_back& told) {
  auto& state = self->state;
  state.mirror = nullptr;
  state.changes.clear();
  state.config.mirrored = told.other;
  state.returned = told;
  state.is_deposed = false;
  become_certain(state);
  offer(self, told, false,
        [self] { self->send(self->state.config.mirrored, make_repeat_changes()); });
}

// It has what the others have.
void tell_directory(self_pointer self) {
  if (auto told = std::exchange(self->state.returned, std::nullopt))
    offer(self, *told, true, [] {});
}

caf::result<msg<wire::TookOver>> take_over(self_pointer self, uint64_t term) {
  auto& state = self->state;
  if (state.returned)
    return to_caf({errc::failed_precondition,
                   fmt::format("it was not told yet what '{}' is", state.config.variable.name)});
  state.has_taken_over = true;
  if (state.accumulator)
    self->send(state.accumulator,
               make_set_step(state.closed ? state.closed->step + 1 : state.first_step));
  return make_took_over(term, state.closed);
}

// The last gradient of each replica, by replica.
std::vector<gradient_id> latest_with(std::vector<gradient_id> latest,
                                     const std::vector<arrival>& accepted) {
  for (const auto& [from, came, step] : accepted) {
    auto place = std::ranges::lower_bound(latest, from.replica, {}, &gradient_id::replica);
    if (place == latest.end() || place->replica != from.replica)
      latest.insert(place, {from.replica, from.iteration});
    else
      place->iteration = std::max(place->iteration, from.iteration);
  }
  return latest;
}

int64_t rows_in(const shape& extents) {
  return extents.rank() == 0 ? 0 : extents.dims().front();
}

// Some rows of a variable, as they are.
gradient rows_of(const tensor& value, const std::vector<int64_t>& rows) {
  auto count = static_cast<int64_t>(rows.size());
  auto dims = value.extents().dims();
  auto row_bytes = rows.empty() ? 0 : value.bytes() / static_cast<size_t>(dims.front());
  dims.front() = count;
  indexed_slices slices{tensor{dtype::i64, {count}}, tensor{value.type(), shape{dims}},
                        value.extents()};
  std::ranges::copy(rows, slices.indices.mutable_values<int64_t>().begin());
  const auto* from = static_cast<const std::byte*>(value.data());
  auto* to = static_cast<std::byte*>(slices.values.mutable_data());
  for (auto row : rows) {
    std::memcpy(to, from + static_cast<size_t>(row) * row_bytes, row_bytes);
    to += row_bytes;
  }
  return slices;
}

} // namespace

expected<msg<wire::VariableSnapshot>> variable_owner_state::read(int32_t component) {
  if (!snapshot.is_empty() && copies.has(component)) return snapshot;
  auto value = copies.read(component);
  if (!value) return tl::unexpected<error>(value.error());
  auto answer = make_variable_snapshot(copies.first().version, to_payload(*value));
  if (copies.are_together() && config.rule == copy_rule::alike) snapshot = answer;
  return answer;
}

expected<msg<wire::VariableChanges>> variable_owner_state::pull(uint64_t known) {
  is_pulled = true;
  variable_changes since{copies.first().version, log.revision()};
  since.by_rows = changed_by_rows;
  if (known == log.revision()) return make_variable_changes(since);
  auto value = copies.read(whole_variable);
  if (!value) return tl::unexpected<error>(value.error());
  if (auto rows = log.rows_since(known))
    since.change = to_payload(rows_of(*value, *rows));
  else
    since.change = to_payload(*value);
  return make_variable_changes(since);
}

expected<msg<wire::VariableSnapshot>>
variable_owner_state::change_by_hand(const msg<wire::ChangeVariable>& wanted) {
  auto said = wanted.reader();
  auto how = static_cast<size_t>(said.getChange());
  if (how >= change_count)
    return fail(errc::malformed, fmt::format("variable '{}' is asked for change {}, which there is "
                                             "not",
                                             config.variable.name, how));
  if (said.getOperand().isNone())
    return fail(errc::invalid_argument,
                fmt::format("variable '{}' is to be changed by nothing", config.variable.name));
  auto operand = to_gradient(read_gradient(said.getOperand(), wanted.owner()));
  auto changed = copies.apply(said.getComponent(), static_cast<change>(how), operand);
  if (!changed) return tl::unexpected<error>(changed.error());
  snapshot = {};
  changed_by_rows = false;
  log.add_all();
  return make_variable_snapshot(copies.first().version, to_payload(*changed));
}

expected<msg<wire::VariableSnapshot>> variable_owner_state::read_average(const std::string& name) {
  const auto& variable = copies.first();
  if (!variable.average || variable.average->name != name)
    return fail(errc::not_found, fmt::format("no average '{}' is kept of variable '{}'", name,
                                             config.variable.name));
  return make_variable_snapshot(variable.version, to_payload(variable.average->values));
}

expected<msg<wire::OptimizerInUse>>
variable_owner_state::use(const msg<wire::UseOptimizer>& optimizer) {
  auto chosen = to_plan(read_optimizer(optimizer.reader()));
  if (!chosen) return tl::unexpected<error>(chosen.error());
  if (config.variable.type != dtype::f32 && config.variable.type != dtype::f64)
    return fail(errc::type_mismatch,
                fmt::format("variable '{}' is {}; an optimizer updates f32 and f64 only",
                            config.variable.name, to_string(config.variable.type)));
  copies.prepare(*chosen);
  plan = std::move(*chosen);
  this->optimizer = optimizer;
  closed.reset();
  const auto& variable = copies.first();
  return make_optimizer_in_use(variable.version, static_cast<uint32_t>(variable.slots.size()));
}

expected<msg<wire::UpdateApplied>>
variable_owner_state::apply(const msg<wire::ApplyUpdate>& update) {
  if (!plan)
    return fail(errc::failed_precondition,
                fmt::format("variable '{}' has no optimizer yet; send UseOptimizer first",
                            config.variable.name));
  if (auto fits = check_slots(*plan, copies.first(), config.variable.name); !fits)
    return tl::unexpected<error>(fits.error());
  auto gradients = gradients_of(update, config.variable);
  if (!gradients) return tl::unexpected<error>(gradients.error());
  gradient_mean mean{*gradients, update.reader().getDivisor()};
  auto began = config.world->now();
  applied_update done{.step = update.reader().getStep()};
  if (update.reader().getMeasure()) done.mean_squared_norm = mean_squared_norm(*gradients);
  if (update.reader().getHold() || update.reader().getMeasure())
    done.squared_norm = squared_norm(copies.first(), mean);
  if (update.reader().getHold())
    held = update;
  else
    apply(mean);
  done = timed(done, began);
  keep_closed(update.reader(), done);
  return make_update_applied(done);
}

// Only owners that are replicated are told whose gradients they get.
void variable_owner_state::keep_closed(wire::ApplyUpdate::Reader update,
                                       const applied_update& done) {
  if (!update.hasTaken()) return;
  auto latest = closed ? std::move(closed->latest) : std::vector<gradient_id>{};
  closed = {.step = update.getStep(),
            .accepted = read_arrivals(update.getTaken().getAccepted()),
            .stale = read_arrivals(update.getTaken().getStale()),
            .applied = done};
  closed->latest = latest_with(std::move(latest), closed->accepted);
}

double variable_owner_state::mean_squared_norm(std::span<const gradient> gradients) const {
  if (gradients.empty()) return 0;
  double sum = 0;
  for (const auto& one : gradients)
    sum += squared_norm(copies.first(), {{&one, 1}});
  return sum / static_cast<double>(gradients.size());
}

expected<msg<wire::UpdateApplied>>
variable_owner_state::release(const msg<wire::ReleaseUpdate>& wanted) {
  auto scale = wanted.reader().getScale();
  auto update = std::exchange(held, {});
  if (update.is_empty())
    return fail(errc::failed_precondition,
                fmt::format("variable '{}' holds no update", config.variable.name));
  if (auto fits = check_slots(*plan, copies.first(), config.variable.name); !fits)
    return tl::unexpected<error>(fits.error());
  auto gradients = gradients_of(update, config.variable);
  if (!gradients) return tl::unexpected<error>(gradients.error());
  auto began = config.world->now();
  apply(gradient_mean{*gradients, update.reader().getDivisor(), scale});
  auto done = timed({.step = update.reader().getStep()}, began);
  if (closed) closed->released = done;
  return make_update_applied(done);
}

// A step without gradients, because all of them were lost, changes nothing.
void variable_owner_state::apply(const gradient_mean& mean) {
  if (mean.gradients.empty()) return;
  snapshot = {}; // our own share in the old version must not count as somebody's look at it
  copies.update(*plan, mean);
  changed_by_rows = updates_rows(*plan, mean);
  if (changed_by_rows && is_pulled)
    log.add_rows(mean.gradients);
  else
    log.add_all();
}

applied_update variable_owner_state::timed(applied_update done, job_time began) const {
  done.version = copies.first().version;
  done.applied = config.world->now();
  done.took = done.applied - began;
  return done;
}

msg<wire::VariableState> variable_owner_state::read_state() const {
  return make_variable_state(saved());
}

variable_payload variable_owner_state::saved() const {
  auto variable = copies.saved();
  variable_payload state{.version = variable.version,
                         .value = to_payload(variable.value),
                         .optimizer = variable.optimizer,
                         .slots_since = variable.slots_since};
  for (const auto& slot : variable.slots)
    state.slots.push_back({slot.name, to_payload(slot.values)});
  if (variable.average)
    state.average = named_payload{variable.average->name, to_payload(variable.average->values)};
  return state;
}

msg<wire::MirrorState> variable_owner_state::told_state() const {
  return make_mirror_state(saved(), closed);
}

expected<msg<wire::UpdateApplied>>
variable_owner_state::mirror_state(const msg<wire::MirrorState>& told) {
  auto state = told.reader().getState();
  if (auto done = restore(troupe::read_state(state, told.owner())); !done)
    return tl::unexpected<error>(done.error());
  closed = read_closed_step(told.reader().getClosed());
  return make_update_applied(closed.value_or(closed_step{}).applied);
}

expected<msg<wire::OptimizerInUse>>
variable_owner_state::restore(const msg<wire::RestoreState>& saved) {
  auto done = restore(troupe::read_state(saved.reader().getState(), saved.owner()));
  if (!done) return tl::unexpected<error>(done.error());
  closed.reset();
  const auto& variable = copies.first();
  return make_optimizer_in_use(variable.version, static_cast<uint32_t>(variable.slots.size()));
}

expected<void> variable_owner_state::restore(variable_payload from) {
  variable_state state;
  auto value = restored(config.variable, config.variable.name, std::move(from.value));
  if (!value) return tl::unexpected<error>(value.error());
  state.value = std::move(*value);
  state.version = from.version;
  state.optimizer = from.optimizer;
  state.slots_since = from.slots_since;
  for (auto& slot : from.slots) {
    auto values = restored(config.variable, slot.name, std::move(slot.value));
    if (!values) return tl::unexpected<error>(values.error());
    state.slots.push_back({slot.name, std::move(*values)});
  }
  if (from.average) {
    auto values = restored(config.variable, from.average->name, std::move(from.average->value));
    if (!values) return tl::unexpected<error>(values.error());
    state.average = variable_slot{from.average->name, std::move(*values)};
  }
  copies.restore(std::move(state));
  changed_by_rows = false;
  log.add_all();
  snapshot = {};
  return {};
}

replicated_owner_actor::behavior_type variable_owner(self_pointer self,
                                                     variable_owner_config config) {
  self->state.copies
    = variable_copies{{config.variable.name, config.copies, config.rule, config.copies_elsewhere},
                      std::exchange(config.initial, {}).clone()};
  self->state.config = std::move(config);
  using state = variable_owner_state;
  self->state.log = change_log{rows_in(self->state.config.variable.extents)};
  return {
    [self](const msg<wire::ReadVariable>& wanted) {
      auto read = [wanted](state& of) { return of.read(wanted.reader().getComponent()); };
      return answer<wire::VariableSnapshot>(self, read);
    },
    [self](const msg<wire::PullVariable>& wanted) {
      auto pull = [wanted](state& of) { return of.pull(wanted.reader().getKnown()); };
      return answer<wire::VariableChanges>(self, pull);
    },
    [self](const msg<wire::ChangeVariable>& wanted) {
      return change_by(self, wanted, &state::change_by_hand);
    },
    [self](const msg<wire::ReadAverage>& average) {
      auto read = [average](state& of) { return of.read_average(average.reader().getName()); };
      return answer<wire::VariableSnapshot>(self, read);
    },
    [self](const msg<wire::UseOptimizer>& wanted) { return change_by(self, wanted, &state::use); },
    [self](const msg<wire::ApplyUpdate>& update) { return apply(self, update); },
    [self](const msg<wire::ReleaseUpdate>& wanted) {
      return change_by(self, wanted, &state::release);
    },
    [self](const msg<wire::ReadState>&) { return self->state.read_state(); },
    [self](const msg<wire::RestoreState>& wanted) {
      return change_by(self, wanted, &state::restore);
    },
    [self](const use_mirror& told) {
      self->state.is_certain = false;
      use(self, told.mirror);
    },
    [self](const use_accumulator& told) { use(self, told.accumulator); },
    [self](const come_back& told) { return_as_mirror(self, told); },
    [self](const msg<wire::RepeatChanges>&) { repeat_to_sender(self); },
    [self](const msg<wire::MirrorState>& told) { return repeat(self, told); },
    [self](const msg<wire::TakeOver>& said) { return take_over(self, said.reader().getTerm()); },
  };
}

} // namespace troupe
