// SPDX-License-Identifier: Apache-2.0
// Reads, changes, updates and restores a variable, and makes each numbered change once.
#include "actors/training/owned_variable.hpp"

#include "actors/training/optimizer_settings.hpp"
#include "messages/checks/limits.hpp"
#include "messages/errors/failure.hpp"
#include "messages/mapped.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <utility>

namespace troupe {

namespace {

// @pre An exception of the rule, which may be a user's code, is under way.
tl::unexpected<error> failed_rule(const update_plan& plan, std::string_view variable) {
  auto reason = reason_of(std::current_exception());
  return fail(reason.code, fmt::format("optimizer '{}' failed at variable '{}': {}",
                                       name_of(plan.rule), variable, reason.message));
}

// The slots of an optimizer of that name go on, so their names have to be the same. A program that
// brings the rule may have changed them since they were saved.
expected<void> check_slot_names(const update_plan& plan, const variable_state& variable,
                                const std::string& name) {
  auto needed = slot_names(plan.rule);
  if (variable.optimizer != name_of(plan.rule)
      || std::ranges::equal(variable.slots, needed, {}, &variable_slot::name))
    return {};
  auto saved = mapped<std::string_view>(variable.slots, &variable_slot::name);
  return fail(errc::failed_precondition,
              fmt::format("variable '{}' was saved with the slots [{}] of optimizer '{}', which "
                          "has [{}] here",
                          name, fmt::join(saved, ", "), variable.optimizer,
                          fmt::join(needed, ", ")));
}

// Copies a saved array into memory of its own.
expected<void> restore_array(const variable_form& variable, const std::string& name,
                             const tensor& saved, tensor& restored) {
  if (saved.type() != variable.type)
    return fail(errc::type_mismatch,
                fmt::format("'{}' was saved as {}, but variable '{}' is {}", name,
                            to_string(saved.type()), variable.name, to_string(variable.type)));
  if (saved.extents() != variable.extents)
    return fail(errc::invalid_argument,
                fmt::format("'{}' was saved with shape {}, but variable '{}' has shape {}", name,
                            to_string(saved.extents()), variable.name,
                            to_string(variable.extents)));
  restored = saved.clone();
  return {};
}

// Adds accepted gradients to the last gradient of each replica, in the order of replicas.
std::vector<gradient_id> latest_with(std::vector<gradient_id> latest,
                                     const std::vector<arrival>& accepted) {
  for (const auto& [from, arrived, step] : accepted) {
    auto place = std::ranges::lower_bound(latest, from.replica, {}, &gradient_id::replica);
    if (place == latest.end() || place->replica != from.replica)
      latest.insert(place, {from.replica, from.iteration});
    else
      place->iteration = std::max(place->iteration, from.iteration);
  }
  return latest;
}

// Some rows of a variable, as sparse values.
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

// ---- changes that may be asked for again ----

tl::unexpected<error> is_answered(const variable_form& variable) {
  return fail(errc::cancelled,
              fmt::format("a change of '{}' is asked for again, which was answered "
                          "before, or long ago",
                          variable.name));
}

// A value of a few bytes may be a number that is given out once: a repeated request gets the same
// answer.
std::optional<snapshot_payload> small_snapshot(const msg<wire::VariableSnapshot>& answer) {
  auto snapshot = answer.reader();
  auto value = read_tensor(snapshot.getValue(), answer.owner());
  if (value.bytes() > limits::copied_bytes_max) return std::nullopt;
  return snapshot_payload{snapshot.getVersion(), std::move(value)};
}

// The changes with values in memory of their own: they are not to keep the message that they came
// with in memory.
std::vector<made_change> without_frames(std::vector<made_change> changes) {
  for (auto& change : changes) {
    if (!change.snapshot) continue;
    auto& value = change.snapshot->value;
    if (value.bytes() <= limits::copied_bytes_max)
      value = value.clone();
    else
      change.snapshot.reset();
  }
  return changes;
}

// The copy of a gradient that lies on a device, else the first. @pre There is one.
gradient nearest(const std::vector<gradient>& copies, device where) {
  auto is_there = [where](const gradient& copy) {
    const auto* rows = std::get_if<indexed_slices>(&copy);
    return (rows != nullptr ? rows->values : std::get<tensor>(copy)).device() == where;
  };
  auto found = std::ranges::find_if(copies, is_there);
  return found == copies.end() ? copies.front() : *found;
}

int64_t rows_in(const shape& extents) {
  return extents.rank() == 0 ? 0 : extents.dims().front();
}

} // namespace

bool computes_at(wire::ReadVariable::Reader reader, device where) {
  return where.kind != device_kind::cpu
         && reader.getDeviceKind() == static_cast<uint8_t>(where.kind)
         && reader.getDeviceIndex() == where.index;
}

owned_variable::owned_variable(const variable_owner_config& config, size_t place)
  : form_(config.variable), rule_(config.rule), world_(config.world),
    copies_({form_.name, config.copies, rule_, config.copies_elsewhere,
             config.places.empty() ? nullptr : config.places[place].owned,
             config.places.empty() ? 0 : config.places[place].stream},
            config.initial.clone()),
    log_(rows_in(form_.extents)) {}

expected<msg<wire::VariableSnapshot>> owned_variable::read(const msg<wire::ReadVariable>& request) {
  auto component = request.reader().getComponent();
  if (copies_.has(component) && computes_at(request.reader(), copies_.where()))
    return copies_.read_in_place(component).map(
      [&](const tensor&) { return *read_there(request); });
  if (!snapshot_.is_empty() && copies_.has(component)) return snapshot_;
  auto value = copies_.read(component);
  if (!value) return tl::unexpected<error>(value.error());
  auto answer = make_variable_snapshot(copies_.first().version, *value);
  if (copies_.are_together() && rule_ == copy_rule::alike) snapshot_ = answer;
  return answer;
}

std::optional<msg<wire::VariableSnapshot>>
owned_variable::read_there(const msg<wire::ReadVariable>& request) const {
  auto component = request.reader().getComponent();
  if (!copies_.has(component)) return std::nullopt;
  const auto& value = copies_.value(component);
  if (!computes_at(request.reader(), value.device())) return std::nullopt;
  return make_variable_snapshot(copies_.first().version, value);
}

expected<msg<wire::VariableChanges>> owned_variable::pull(const msg<wire::PullVariable>& request) {
  auto known = request.reader().getKnown();
  is_pulled_ = true;
  variable_changes since{copies_.first().version, log_.revision()};
  since.by_rows = changed_by_rows_;
  if (known == log_.revision()) return make_variable_changes(since);
  auto value = copies_.read(whole_variable);
  if (!value) return tl::unexpected<error>(value.error());
  since.change = *value;
  if (auto rows = log_.rows_since(known)) {
    if (auto there = copies_.wait(); !there) return tl::unexpected<error>(there.error());
    since.change = rows_of(*value, *rows);
  }
  return make_variable_changes(since);
}

expected<msg<wire::VariableSnapshot>>
owned_variable::change_by_hand(const msg<wire::ChangeVariable>& request) {
  auto body = request.reader();
  auto kind = static_cast<size_t>(body.getChange());
  if (kind >= change_count)
    return fail(errc::malformed, fmt::format("variable '{}' is asked for change {}, which there is "
                                             "not",
                                             form_.name, kind));
  if (body.getOperand().isNone())
    return fail(errc::invalid_argument,
                fmt::format("variable '{}' is to be changed by nothing", form_.name));
  auto operand = *read_gradient(body.getOperand(), request.owner());
  auto changed = copies_.apply(body.getComponent(), static_cast<change>(kind), operand);
  if (!changed) return tl::unexpected<error>(changed.error());
  snapshot_ = {};
  changed_by_rows_ = false;
  log_.add_all();
  return make_variable_snapshot(copies_.first().version, *changed);
}

expected<msg<wire::VariableSnapshot>>
owned_variable::change_once(const msg<wire::ChangeVariable>& request) {
  if (!request.reader().hasId()) return change_by_hand(request);
  auto id = read_request_id(request.reader().getId());
  if (const auto* known = made_.find(id)) {
    if (known->snapshot)
      return make_variable_snapshot(known->snapshot->version, known->snapshot->value);
    return read(make_read_variable(request.reader().getComponent()));
  }
  if (made_.is_over(id)) return is_answered(form_);
  auto answer = change_by_hand(request);
  if (answer) made_.add(id, {id, small_snapshot(*answer), {}});
  return answer;
}

expected<msg<wire::VariableSnapshot>>
owned_variable::read_average(const msg<wire::ReadAverage>& request) {
  std::string name = request.reader().getName();
  const auto& variable = copies_.first();
  if (!variable.average || variable.average->name != name)
    return fail(errc::not_found,
                fmt::format("no average '{}' is kept of variable '{}'", name, form_.name));
  return copies_.read_average().map(
    [&](const tensor& values) { return make_variable_snapshot(variable.version, values); });
}

expected<msg<wire::OptimizerInUse>> owned_variable::use(const msg<wire::UseOptimizer>& optimizer) {
  auto chosen = plan_of(optimizer.reader());
  if (!chosen) return tl::unexpected<error>(chosen.error());
  auto ready = prepared(*chosen);
  if (!ready) return tl::unexpected<error>(ready.error());
  if (optimizer.reader().getAsk()) return in_use();
  take(std::move(*ready));
  plan_ = std::move(*chosen);
  optimizer_ = optimizer;
  closed_.reset();
  return in_use();
}

// The optimizer is kept in a message of its own: that of an update has gradients, too.
expected<void> owned_variable::use_named(wire::UseOptimizer::Reader optimizer) {
  if (!optimizer_.is_empty() && are_same(optimizer, optimizer_.reader())) return {};
  return use(make_use_optimizer(read_optimizer(optimizer))).map([](const auto& /*in_use*/) {});
}

expected<void> owned_variable::use_optimizer_of(wire::ApplyUpdate::Reader update) {
  return update.hasOptimizer() ? use_named(update.getOptimizer()) : check_ready();
}

// The plan of an optimizer, if that can update the variable.
expected<update_plan> owned_variable::plan_of(wire::UseOptimizer::Reader optimizer) const {
  auto chosen = to_plan(read_optimizer(optimizer));
  if (!chosen) return chosen;
  if (auto fits = check_updatable(form_); !fits) return tl::unexpected<error>(fits.error());
  if (chosen->average && rule_ != copy_rule::alike)
    return fail(errc::unimplemented,
                fmt::format("variable '{}' is synchronised on read, which does not go together "
                            "with an average; make it ON_WRITE, or leave out its average",
                            form_.name));
  return chosen;
}

// The variable with the slots and the average that a plan needs; its own arrays are brought to
// their device once, whatever comes of it.
expected<variable_copies> owned_variable::prepared(const update_plan& plan) {
  if (auto fits = check_slot_names(plan, copies_.first(), form_.name); !fits)
    return tl::unexpected<error>(fits.error());
  if (auto there = copies_.read_in_place(0); !there) return tl::unexpected<error>(there.error());
  auto copies = copies_;
  try {
    if (auto ready = copies.prepare(plan); !ready) return tl::unexpected<error>(ready.error());
  } catch (...) {
    return failed_rule(plan, form_.name);
  }
  return copies;
}

void owned_variable::take(variable_copies prepared) {
  copies_ = std::move(prepared);
  is_restored_ = false;
}

msg<wire::OptimizerInUse> owned_variable::in_use() const {
  const auto& variable = copies_.first();
  return make_optimizer_in_use(variable.version, static_cast<uint32_t>(variable.slots.size()));
}

expected<void> owned_variable::check_ready() const {
  if (plan_) return {};
  return fail(
    errc::failed_precondition,
    fmt::format("variable '{}' has no optimizer yet; send UseOptimizer first", form_.name));
}

// The gradients of an update, brought to the variable. They are checked again, since they may come
// from another node.
expected<std::vector<gradient>>
owned_variable::gradients_of(const msg<wire::ApplyUpdate>& update) const {
  auto given = update.reader().getGradients();
  std::vector<gradient> gradients;
  gradients.reserve(given.size());
  for (auto gradient : given) {
    if (auto fits = check_gradient(form_, gradient); !fits)
      return tl::unexpected<error>(fits.error());
    gradients.push_back(*read_gradient(gradient, update.owner()));
  }
  if (update.reader().getOneForEachDevice()) gradients = {nearest(gradients, copies_.where())};
  return copies_.placed(std::move(gradients));
}

expected<void> owned_variable::measure(const msg<wire::ApplyUpdate>& update,
                                       const gradient_mean& mean, applied_update& done) const {
  auto is_measured = update.reader().getMeasure();
  if (is_measured) {
    auto each = mean_squared_norm(mean.gradients);
    if (!each) return tl::unexpected<error>(each.error());
    done.mean_squared_norm = *each;
  }
  if (is_measured || update.reader().getHold()) {
    auto norm = copies_.squared_norms({&mean, 1});
    if (!norm) return tl::unexpected<error>(norm.error());
    done.squared_norm = norm->front();
  }
  return {};
}

expected<msg<wire::UpdateApplied>> owned_variable::apply(const msg<wire::ApplyUpdate>& update) {
  auto gradients = gradients_of(update);
  if (!gradients) return tl::unexpected<error>(gradients.error());
  if (auto ready = use_optimizer_of(update.reader()); !ready)
    return tl::unexpected<error>(ready.error());
  gradient_mean mean{*gradients, update.reader().getDivisor()};
  auto began = world_->now();
  applied_update done{.step = update.reader().getStep()};
  if (auto measured = measure(update, mean, done); !measured)
    return tl::unexpected<error>(measured.error());
  if (update.reader().getHold())
    held_ = {update, std::move(*gradients)};
  else if (auto applied = apply(mean); !applied)
    return tl::unexpected<error>(applied.error());
  done = timed(done, began);
  keep_closed(update.reader(), done);
  return make_update_applied(done);
}

expected<msg<wire::UpdateApplied>>
owned_variable::apply_once(const msg<wire::ApplyUpdate>& update) {
  if (!update.reader().hasId()) return apply(update);
  auto id = read_request_id(update.reader().getId());
  if (const auto* known = made_.find(id))
    return make_update_applied(known->applied.value_or(applied_update{}));
  if (made_.is_over(id)) return is_answered(form_);
  auto answer = apply(update);
  if (answer) made_.add(id, {id, {}, read_update_applied(answer->reader())});
  return answer;
}

expected<std::vector<gradient>> owned_variable::placed(std::vector<gradient> gradients) const {
  if (auto ready = check_ready(); !ready) return tl::unexpected<error>(ready.error());
  return copies_.placed(std::move(gradients));
}

// Remembers a step for the mirror. Only owners that are replicated are told which replicas'
// gradients they get.
void owned_variable::keep_closed(wire::ApplyUpdate::Reader update, const applied_update& done) {
  if (!update.hasTaken()) return;
  auto latest = closed_ ? std::move(closed_->latest) : std::vector<gradient_id>{};
  closed_ = {.step = update.getStep(),
             .accepted = read_arrivals(update.getTaken().getAccepted()),
             .stale = read_arrivals(update.getTaken().getStale()),
             .applied = done};
  closed_->latest = latest_with(std::move(latest), closed_->accepted);
}

expected<double> owned_variable::mean_squared_norm(std::span<const gradient> gradients) const {
  if (gradients.empty()) return 0;
  auto each = mapped(gradients, [](const auto& one) { return gradient_mean{{&one, 1}}; });
  auto norms = copies_.squared_norms(each);
  if (!norms) return tl::unexpected<error>(norms.error());
  return std::accumulate(norms->begin(), norms->end(), 0.0) / static_cast<double>(norms->size());
}

expected<msg<wire::UpdateApplied>>
owned_variable::release(const msg<wire::ReleaseUpdate>& request) {
  auto [update, gradients] = std::exchange(held_, {});
  if (update.is_empty())
    return fail(errc::failed_precondition,
                fmt::format("variable '{}' holds no update", form_.name));
  if (auto ready = use_optimizer_of(update.reader()); !ready)
    return tl::unexpected<error>(ready.error());
  auto began = world_->now();
  gradient_mean mean{gradients, update.reader().getDivisor(), request.reader().getScale()};
  if (auto applied = apply(mean); !applied) return tl::unexpected<error>(applied.error());
  // The gradients go when this returns, and the device may still read them.
  if (auto read = copies_.wait(); !read) return tl::unexpected<error>(read.error());
  auto done = timed({.step = update.reader().getStep()}, began);
  if (closed_) closed_->released = done;
  return make_update_applied(done);
}

// A step without gradients, because all of them were lost, changes nothing.
expected<void> owned_variable::apply(const gradient_mean& mean) {
  if (mean.gradients.empty()) return {};
  if (is_restored_) { // with slots that may be of another optimizer
    auto ready = prepared(*plan_);
    if (!ready) return tl::unexpected<error>(ready.error());
    take(std::move(*ready));
  }
  snapshot_ = {}; // our own share in the old version must not count as another reader's
  try {
    if (auto updated = copies_.update(*plan_, mean); !updated) return updated;
  } catch (...) {
    return failed_rule(*plan_, form_.name);
  }
  changed_by_rows_ = updates_rows(*plan_, mean);
  if (changed_by_rows_ && is_pulled_)
    log_.add_rows(mean.gradients);
  else
    log_.add_all();
  return {};
}

applied_update owned_variable::timed(applied_update done, job_time began) const {
  done.version = copies_.first().version;
  done.applied = world_->now();
  done.took = done.applied - began;
  return done;
}

expected<msg<wire::VariableState>>
owned_variable::read_state(const msg<wire::ReadState>& /*request*/) {
  return saved().map(make_variable_state);
}

expected<variable_payload> owned_variable::saved() const {
  auto variable = copies_.saved();
  if (!variable) return tl::unexpected<error>(variable.error());
  variable_payload state{.version = variable->version,
                         .value = variable->value,
                         .optimizer = variable->optimizer,
                         .slots_since = variable->slots_since};
  for (const auto& slot : variable->slots)
    state.slots.push_back({slot.name, slot.values});
  if (variable->average)
    state.average = named_payload{variable->average->name, variable->average->values};
  return state;
}

msg<wire::MirrorState> owned_variable::state_for_mirror() const {
  auto state = saved();
  TROUPE_ASSERT(state.has_value()); // nothing but a device can fail
  return make_mirror_state(*state, closed_, made_.all());
}

expected<msg<wire::UpdateApplied>>
owned_variable::mirror_state(const msg<wire::MirrorState>& from) {
  auto state = from.reader().getState();
  if (auto done = restore(troupe::read_state(state, from.owner())); !done)
    return tl::unexpected<error>(done.error());
  closed_ = read_closed_step(from.reader().getClosed());
  made_.clear();
  for (auto& change : without_frames(read_made_changes(from.reader().getMade(), from.owner())))
    made_.add(change.id, change);
  return make_update_applied(closed_.value_or(closed_step{}).applied);
}

expected<msg<wire::OptimizerInUse>> owned_variable::restore(const msg<wire::RestoreState>& saved) {
  auto done = restore(troupe::read_state(saved.reader().getState(), saved.owner()));
  if (!done) return tl::unexpected<error>(done.error());
  closed_.reset();
  held_ = {};
  return in_use();
}

expected<void> owned_variable::restore(const variable_payload& from) {
  variable_state state;
  state.version = from.version;
  state.optimizer = from.optimizer;
  state.slots_since = from.slots_since;
  if (auto done = restore_array(form_, form_.name, from.value, state.value); !done) return done;
  for (const auto& [name, value] : from.slots) {
    auto& slot = state.slots.emplace_back(variable_slot{name, {}});
    if (auto done = restore_array(form_, name, value, slot.values); !done) return done;
  }
  if (from.average) {
    const auto& [name, value] = *from.average;
    auto& average = state.average.emplace(variable_slot{name, {}});
    if (auto done = restore_array(form_, name, value, average.values); !done) return done;
  }
  copies_.restore(std::move(state));
  is_restored_ = true;
  changed_by_rows_ = false;
  log_.add_all();
  snapshot_ = {};
  return {};
}

} // namespace troupe
