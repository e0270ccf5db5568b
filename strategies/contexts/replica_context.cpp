// SPDX-License-Identifier: Apache-2.0
// Reads and changes variables for a replica, and meets the other replicas.
#include "strategies/contexts/replica_context.hpp"

#include "actors/training/variable_copies.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/checks/limits.hpp"
#include "messages/errors/printable.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"
#include "messages/replication_message.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/job_actors.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/contexts/variable_bundles.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/reduce/process_group.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <iterator>
#include <numeric>

namespace troupe {

namespace {

// A replica's request for a variable: for its own copy, where there are copies. Most requests are
// the same message. @param computes_on Where the replica can read it, beside the host's memory.
msg<wire::ReadVariable> read_variable(const variable& source, uint32_t replica,
                                      device computes_on = {}) {
  static const auto whole = make_read_variable();
  auto component = component_of(source, replica);
  // Another process has devices of the same names.
  if (source.lies_on(computes_on) && computes_on.kind != device_kind::cpu)
    return make_read_variable(component, computes_on);
  return component == whole_variable ? whole : make_read_variable(component);
}

std::string_view call_name(change operation, const variable_operand& operand) {
  return std::holds_alternative<indexed_slices>(operand) ? name_of_scatter(operation)
                                                         : name_of_assign(operation);
}

// Checks what a replica may do to a variable, before any owner is asked.
void check_change_in_replica(const variable& target, change operation,
                             const variable_operand& operand) {
  auto mode = target.aggregation();
  auto is_scatter = std::holds_alternative<indexed_slices>(operand);
  if (target.synchronization() == variable_synchronization::on_read) return; // its owner knows
  if (target.owner_strategy().num_replicas_in_sync() == 1) return;
  auto is_shared = !target.owner_strategy().layout().mirrors_variables;
  if (is_shared && mode == variable_aggregation::none)
    throw_failure(errc::invalid_argument,
                  "You must specify an aggregation method to update variable '{}' in Replica "
                  "Context: all replicas share it; make it with one",
                  target.name());
  auto needs_one_writer
    = operation == change::minimum || operation == change::maximum || operation == change::assign;
  auto is_combined = mode == variable_aggregation::sum || mode == variable_aggregation::mean;
  if (is_scatter && needs_one_writer && is_combined)
    throw_failure(errc::unimplemented,
                  "{} of variable '{}' in a replica context needs aggregation NONE or "
                  "ONLY_FIRST_REPLICA, not {}",
                  name_of_scatter(operation), target.name(), to_string(mode));
}

/// The effect of a change by a replica of a job, where no replica waits for others: each process
/// is one worker, so perhaps only one of its replicas may make the change.
enum class change_effect : uint8_t { own_copy, all_copies, none };

change_effect check_change_in_job(const variable& target, std::string_view call, change operation,
                                  const replica_context::place& place) {
  auto mode = target.aggregation();
  auto is_mirrored = target.owner_strategy().layout().mirrors_variables;
  auto is_own = target.synchronization() == variable_synchronization::on_read
                || (is_mirrored && mode == variable_aggregation::none);
  if (is_own) return change_effect::own_copy;
  if (place.replicas_here == 1) return change_effect::all_copies;
  if (mode == variable_aggregation::only_first_replica)
    return place.at_work->is_first(place.replica) ? change_effect::all_copies : change_effect::none;
  auto adds_up
    = operation != change::assign && operation != change::minimum && operation != change::maximum;
  if (mode == variable_aggregation::sum && adds_up) return change_effect::all_copies;
  throw_failure(errc::invalid_argument,
                "{} of variable '{}', whose aggregation is {}, in a step of `train`: the {} "
                "replicas of this process do not wait for each other; make it with SUM for what "
                "adds up or with ONLY_FIRST_REPLICA, or change it by the strategy, outside",
                call, target.name(), to_string(mode), place.replicas_here);
}

// A variable's name without the numbers that tell replicas apart: "dense_1/bias" is "dense/bias".
std::string canonical_name(const std::string& name) {
  std::string result;
  for (size_t begin = 0; begin <= name.size();) {
    auto end = std::min(name.find('/', begin), name.size());
    auto part = name.substr(begin, end - begin);
    auto length = part.size();
    if (length > 2 && part[length - 2] == '_' && part[length - 1] >= '0' && part[length - 1] <= '9')
      part.resize(length - 2);
    result += part + '/';
    begin = end + 1;
  }
  result.pop_back();
  return result;
}

// The name that the first process gives a variable, for all processes: the names may differ by the
// numbers that tell replicas apart.
task<std::string> first_name(const reducer& reducer, std::string own) {
  if (reducer.group() == nullptr) co_return own;
  auto is_first = reducer.group()->rank == 0; // the others bring no letters
  tensor letters{dtype::i64, {is_first ? static_cast<int64_t>(own.size()) : 0}};
  if (is_first) std::ranges::copy(own, letters.mutable_values<int64_t>().begin());
  auto call_name = fmt::format("name of variable '{}'", canonical_name(own));
  auto gathering
    = reducer.gather_rows(std::move(call_name), std::vector<tensor>{std::move(letters)});
  auto gathered = co_await gathering;
  std::string first;
  for (auto letter : gathered.front().values<int64_t>())
    first += static_cast<char>(letter);
  co_return first;
}

// Changes all copies alike. @returns For each replica its own copy: copies may have been apart.
task<distributed_value<tensor>> change_copies(activity& host, variable target, change operation,
                                              variable_operand operand) {
  auto changing = change_copy(host, target, whole_variable, operation, std::move(operand));
  auto first = co_await changing;
  if (target.copies() == 1) co_return distributed_value<tensor>::mirrored(std::move(first), 1);
  auto reading = read_copies(host, target);
  auto copies = co_await reading;
  auto is_first = [&](const tensor& copy) { return have_same_bits(copy, first); };
  if (std::ranges::all_of(copies, is_first))
    co_return distributed_value<tensor>::mirrored(std::move(first), copies.size());
  co_return distributed_value<tensor>::per_replica(std::move(copies));
}

// The merge function of a change that all replicas make.
task<distributed_value<tensor>>
change_together(cross_replica_context& context, variable target, distributed_value<change> changes,
                distributed_value<brought_value<variable_operand>> brought) {
  auto operation = changes.primary();
  auto first = context.strategy().first_local_replica();
  for (size_t i = 1; i < changes.size(); ++i)
    if (changes[i] != operation)
      throw_failure(
        errc::failed_precondition,
        "replica {} calls {} of variable '{}', replica {} {}; all replicas have to make "
        "the same change",
        first + i, name_of_assign(changes[i]), target.name(), first, name_of_assign(operation));
  auto operands = mapped(brought.local_results(), [](const auto& operand) { return *operand; });
  auto aggregating = aggregate(context.reducing(), target, operation, std::move(operands));
  auto aggregated = co_await aggregating;
  auto changing = change_copies(context.host(), target, operation, std::move(aggregated));
  auto values = co_await changing;
  co_return values;
}

// Part of an array along one of its dimensions.
tensor slice_along(const tensor& from, int64_t axis, int64_t begin, int64_t end) {
  auto along = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(from.rank()) : axis);
  auto dims = from.extents().dims();
  size_t outer = 1;
  for (size_t i = 0; i < along; ++i)
    outer *= static_cast<size_t>(dims[i]);
  auto length = static_cast<size_t>(dims[along]);
  dims[along] = end - begin;
  tensor result{from.type(), shape{dims}};
  if (result.element_count() == 0) return result;
  auto row = from.bytes() / outer / length;
  auto whole = from.contiguous();
  auto bytes = row * static_cast<size_t>(end - begin);
  for (size_t block = 0; block < outer; ++block)
    std::memcpy(static_cast<std::byte*>(result.mutable_data()) + block * bytes,
                static_cast<const std::byte*>(whole.data()) + block * (whole.bytes() / outer)
                  + row * static_cast<size_t>(begin),
                bytes);
  return result;
}

} // namespace

uint32_t replica_context::num_replicas_in_sync() const {
  return place_.meeting ? place_.owner->num_replicas_in_sync() : place_.replicas;
}

random_key replica_context::random(std::string_view purpose) const {
  return {activity_.world().seed(), purpose, replica_id_in_sync_group(), iteration()};
}

const variable_owner_actor& replica_context::owner_of(const variable& source) const {
  check_same_world("read", activity_.world(), source);
  return place_.actors ? place_.actors->owner_of(source) : source.owner();
}

task<std::vector<tensor>> replica_context::read(std::vector<variable> variables) {
  return read_for(std::move(variables), {});
}

// The variables of a bundle are read together, each other one by itself.
task<std::vector<tensor>> replica_context::read_on_device(std::vector<variable> variables) {
  const auto& device = activity_.computes_at().owned;
  auto place = device ? device->where() : troupe::device{};
  auto reading_bundles = read_bundles(place);
  auto bundled = co_await reading_bundles;
  auto is_alone = [&](const variable& variable) {
    return &variable.owner_strategy() != place_.owner || !bundled.contains(variable.index());
  };
  std::vector<variable> alone;
  std::ranges::copy_if(variables, std::back_inserter(alone), is_alone);
  auto reading = read_for(std::move(alone), place);
  auto values_alone = co_await reading;
  auto next = values_alone.begin();
  std::vector<tensor> values;
  values.reserve(variables.size());
  for (const auto& variable : variables)
    values.push_back(is_alone(variable) ? std::move(*next++) : bundled.at(variable.index()));
  co_return values;
}

task<std::map<size_t, tensor>> replica_context::read_bundles(troupe::device device) {
  std::map<size_t, tensor> found;
  const auto& variables = place_.actors ? place_.actors->variables : place_.owner->variables();
  const auto bundles = place_.actors ? place_.actors->bundles : place_.owner->bundles().all();
  std::vector<std::pair<bundle_actor, read_bundle>> requests;
  std::vector<std::vector<size_t>> indices;
  for (const auto& bundle : bundles) {
    if (bundle.where != device) continue;
    requests.emplace_back(bundle.holder, read_bundle{});
    indices.push_back(
      mapped(bundle.variables, [&](auto position) { return variables[position].index(); }));
  }
  if (requests.empty()) co_return found;
  auto reading = activity_.request_all<bundle_values>(std::move(requests));
  auto replies = co_await reading;
  for (size_t i = 0; i < replies.size(); ++i) {
    auto read = value_or_throw(std::move(replies[i]));
    for (size_t j = 0; j < read.values.size(); ++j)
      found.emplace(indices[i][j],
                    place_.meeting ? own_handle(read.values[j]) : std::move(read.values[j]));
  }
  co_return found;
}

task<std::vector<tensor>> replica_context::read_for(std::vector<variable> variables,
                                                    troupe::device computes_on) {
  std::vector<std::pair<variable_owner_actor, msg<wire::ReadVariable>>> requests;
  requests.reserve(variables.size());
  for (const auto& variable : variables)
    requests.emplace_back(owner_of(variable), read_variable(variable, place_.replica, computes_on));
  auto reading = activity_.request_all<msg<wire::VariableSnapshot>>(std::move(requests));
  auto snapshots = co_await reading;
  std::vector<tensor> values;
  values.reserve(snapshots.size());
  for (auto& snapshot : snapshots) {
    auto value = value_of(std::move(snapshot));
    values.push_back(place_.meeting ? own_handle(value) : value);
  }
  co_return values;
}

task<tensor> replica_context::read(variable source) {
  auto reading = activity_.request<msg<wire::VariableSnapshot>>(
    owner_of(source), read_variable(source, place_.replica));
  auto value = value_of(co_await reading);
  co_return place_.meeting ? own_handle(value) : value;
}

task<void> replica_context::bring_to_host(std::vector<tensor*> arrays) {
  return troupe::bring_to_host(activity_, place_.owner->devices(), std::move(arrays));
}

void replica_context::keep(const std::string& name, const tensor& value) {
  if (name.size() > limits::text_bytes_max || value.rank() > limits::rank_max)
    throw_failure(errc::limit_exceeded,
                  "keep: a name of {} bytes and an array of rank {}; at most {} and {} are kept",
                  name.size(), value.rank(), limits::text_bytes_max, limits::rank_max);
  if (!is_utf8(name)) throw_failure(errc::invalid_argument, "keep: the name is no UTF-8");
  value.check_on_host();
  activity_.keep(name, value);
}

std::optional<tensor> replica_context::kept(const std::string& name) const {
  return activity_.kept(name);
}

const std::string& replica_context::device() const {
  const auto& devices = place_.owner->layout().worker_devices;
  return devices[place_.replica % devices.size()];
}

void replica_context::arrive(merge_site site, std::shared_ptr<void> arguments) {
  if (!place_.meeting)
    throw_failure(errc::wrong_context,
                  "merge_call needs replicas that wait for each other, but in `train` each goes at "
                  "its own pace; run the function by `strategy.run` of a strategy that has it");
  activity_.send(place_.meeting, merge_arrival{place_.replica, std::move(site),
                                               std::move(arguments), activity_.handle()});
}

void replica_context::announce(merge_result merged) {
  if (place_.replicas > 1) activity_.send(place_.meeting, std::move(merged));
}

task<tensor> replica_context::all_gather(tensor value, int64_t axis,
                                         communication_options options) {
  auto gather =
    [options](cross_replica_context& context, distributed_value<int64_t> axes,
              distributed_value<brought_value<tensor>> values) -> task<distributed_value<tensor>> {
    auto axis = axes.primary();
    auto first = context.strategy().first_local_replica();
    for (size_t i = 1; i < axes.size(); ++i)
      if (axes[i] != axis)
        throw_failure(errc::failed_precondition,
                      "replica {} gathers along axis {}, replica {} along axis {}; all replicas "
                      "have to gather alike",
                      first + i, axes[i], first, axis);
    return context.gather_brought(
      mapped(values.local_results(), [](const auto& part) { return *part; }), axis, options);
  };
  auto own = std::make_shared<const tensor>(std::move(value));
  return merge_call(gather, axis, brought_value<tensor>{std::move(own)});
}

task<tensor> replica_context::all_gather_gradient(tensor by_result, int64_t axis, int64_t extent) {
  std::vector<int64_t> extents(num_replicas_in_sync());
  extents[replica_id_in_sync_group()] = extent;
  auto place = by_result.device();
  auto reducing = all_reduce(reduce_op::sum, std::pair{std::move(by_result), std::move(extents)});
  auto [sum, all_extents] = co_await reducing;
  auto rank = static_cast<int64_t>(sum.rank());
  auto whole = std::accumulate(all_extents.begin(), all_extents.end(), int64_t{0});
  auto along = axis < 0 ? axis + rank : axis;
  auto is_there = along >= 0 && along < rank && std::ranges::min(all_extents) >= 0;
  if (!is_there || sum.extents()[static_cast<size_t>(along)] != whole)
    throw_failure(
      errc::invalid_argument,
      "a gradient of shape {} is not by what all_gather gives of {} in all along axis {}",
      to_string(sum.extents()), whole, axis);
  auto own = all_extents.begin() + replica_id_in_sync_group();
  auto begin = std::accumulate(all_extents.begin(), own, int64_t{0});
  auto bringing = bring_to_host({&sum});
  co_await bringing;
  auto part = slice_along(sum, axis, begin, begin + extent);
  std::vector<array_move> moves{{&part, place}};
  auto returning = move_arrays(activity_, place_.owner->devices(), std::move(moves));
  co_await returning;
  co_return part;
}

task<tensor> replica_context::apply(variable target, change operation, variable_operand operand) {
  if (auto* value = std::get_if<distributed_value<tensor>>(&operand)) {
    operand = own_handle(value->select(place_.replica));
  } else if (auto* rows = std::get_if<distributed_value<indexed_slices>>(&operand)) {
    operand = indexed_slices{rows->select(place_.replica)};
  } else if (const auto* from = std::get_if<variable>(&operand)) {
    auto reading = read(*from);
    auto value = co_await reading;
    operand = value;
  }
  context_check::replica(call_name(operation, operand), *this);
  check_made_by(call_name(operation, operand), *place_.owner, target);
  if (place_.actors) {
    auto changing = apply_in_job(std::move(target), operation, std::move(operand));
    auto changed = co_await changing;
    co_return changed;
  }
  check_change_in_replica(target, operation, operand);
  auto is_own = target.synchronization() == variable_synchronization::on_read
                || target.aggregation() == variable_aggregation::none;
  if (is_own || num_replicas_in_sync() == 1) {
    auto component = component_of(target, place_.replica);
    auto changing = change_copy(activity_, target, component, operation, std::move(operand));
    auto value = co_await changing;
    co_return value;
  }
  auto own = std::make_shared<const variable_operand>(std::move(operand));
  auto merging = merge_call(change_together, std::move(target), operation,
                            brought_value<variable_operand>{std::move(own)});
  auto value = co_await merging;
  co_return own_handle(value); // a value for each replica, whether or not copies are equal
}

task<tensor> replica_context::apply_in_job(variable target, change operation,
                                           variable_operand operand) {
  auto effect = check_change_in_job(target, call_name(operation, operand), operation, place_);
  if (effect == change_effect::none) {
    auto reading = read(target);
    auto value = co_await reading;
    co_return value;
  }
  auto component
    = effect == change_effect::all_copies ? whole_variable : component_of(target, place_.replica);
  auto bringing = bring_to_host(arrays_in(operand));
  co_await bringing;
  auto message
    = make_change_variable(static_cast<uint8_t>(operation), to_change(target, operand), component);
  auto changing = change_once(target, std::move(message));
  auto changed = co_await changing;
  co_return changed;
}

// A change that may be asked for again has a number.
task<tensor> replica_context::change_once(variable target, msg<wire::ChangeVariable> message) {
  auto owner = owner_of(target);
  auto& numbers = changes_[target.index()];
  request_id id;
  if (place_.actors->ask_again_after > job_time{0}) {
    if (numbers.client == 0) {
      auto asking = activity_.request<msg<wire::OwnerFollowed>>(
        owner, make_follow_owner(static_cast<uint32_t>(target.index()), false));
      auto reply = value_or_throw(co_await asking);
      numbers.client = reply.reader().getClient();
    }
    id = numbers.begin();
    message = numbered(message, id);
  }
  auto changing = activity_.request<msg<wire::VariableSnapshot>>(owner, std::move(message));
  auto changed = co_await changing;
  numbers.open.erase(id.number);
  co_return value_of(std::move(changed));
}

task<variable> replica_context::make_variable(std::string name, tensor initial,
                                              variable_options options) {
  auto make = [options](cross_replica_context& context, distributed_value<std::string> names,
                        distributed_value<tensor> initials) -> task<variable> {
    for (size_t i = 1; i < names.size(); ++i)
      if (canonical_name(names[i]) != canonical_name(names[0]))
        throw_failure(errc::invalid_argument,
                      "Tried to create variable '{}' with mismatching name on device {}: replica "
                      "{} makes '{}'; all have to make the same one",
                      names[0], context.strategy().layout().worker_devices[i],
                      context.strategy().first_local_replica() + i, names[i]);
    auto naming = first_name(context.reducing(), names[0]);
    auto name = co_await naming;
    auto making = context.make_variable(std::move(name), initials[0], options);
    auto made = co_await making;
    co_return made;
  };
  return merge_call(make, std::move(name), std::move(initial));
}

void replica_context::settle(const work_outcome& outcome) {
  compute_time_ += outcome.elapsed;
  computed_at_ = activity_.world().now();
  if (outcome.thrown) std::rethrow_exception(outcome.thrown);
  if (outcome.cancelled)
    throw_failure(errc::cancelled, "the step has enough gradients without this one");
}

} // namespace troupe
