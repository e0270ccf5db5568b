// SPDX-License-Identifier: Apache-2.0
// Makes the variables of a strategy, with their actors.
#include "actors/replication/variable_cache.hpp"
#include "actors/training/variable_owner.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/checks/limits.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/strategy.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/values/variable_name.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace troupe {

namespace {

void check_new_variable(std::span<const variable> existing, const std::string& name,
                        const tensor& initial) {
  check_variable_name(name);
  auto has_name = [&](const variable& other) { return other.name() == name; };
  if (std::ranges::any_of(existing, has_name))
    throw_failure(errc::invalid_argument,
                  "there is a variable '{}' already; give this one another name", name);
  if (initial.rank() > limits::rank_max)
    throw_failure(errc::limit_exceeded, "variable '{}' has {} dimensions; at most {} are possible",
                  name, initial.rank(), limits::rank_max);
  auto type = initial.type();
  if (type == dtype::f16 || type == dtype::bf16)
    throw_failure(errc::type_mismatch, "variable '{}' is {}; variables are f32, f64, i32 or i64",
                  name, to_string(type));
}

// Values of enumerations may come out of a file or a foreign language.
void check_options(const std::string& name, const tensor& initial, const variable_options& options,
                   const strategy_layout& layout) {
  auto synchronization = static_cast<int>(options.synchronization);
  if (synchronization > static_cast<int>(variable_synchronization::on_read))
    throw_failure(errc::invalid_argument,
                  "Invalid variable synchronization mode: {} for variable: {}", synchronization,
                  name);
  auto aggregation = static_cast<int>(options.aggregation);
  if (aggregation > static_cast<int>(variable_aggregation::only_first_replica))
    throw_failure(errc::invalid_argument, "Invalid variable aggregation mode: {} for variable: {}",
                  aggregation, name);
  if (options.synchronization == variable_synchronization::none)
    throw_failure(
      errc::invalid_argument,
      "`NONE` variable synchronization mode is not supported with {} strategy: variable '{}'; "
      "choose ON_WRITE or ON_READ",
      layout.name, name);
  if (options.aggregation == variable_aggregation::mean && !is_floating(initial.type()))
    throw_failure(errc::invalid_argument,
                  "variable '{}' is {}; aggregation MEAN is for floating variables only", name,
                  to_string(initial.type()));
}

copy_rule rule_of(variable_synchronization synchronization, variable_aggregation aggregation) {
  if (synchronization != variable_synchronization::on_read) return copy_rule::alike;
  switch (aggregation) {
  case variable_aggregation::sum:
    return copy_rule::sum;
  case variable_aggregation::mean:
    return copy_rule::mean;
  case variable_aggregation::only_first_replica:
    return copy_rule::first_replica;
  default:
    return copy_rule::none;
  }
}

// An owner that stands here alone gets its restored state before any other actor can ask it for
// anything. Any other owner is waited for: requests may reach it by way of other processes, too.
void restore_saved(world& world, const variable& made, bool is_here_alone,
                   const variable_payload& saved) {
  auto message = make_restore_state(saved);
  if (is_here_alone) return caf::anon_send(made.owner(), message);
  const auto& stack = context_stack::current();
  if (!stack.may_block() || stack.top().kind == context_kind::computing)
    throw_failure(
      errc::wrong_context,
      "variable '{}' begins with what a checkpoint holds of it, which its owner in another "
      "process has to be told; make it outside of functions that the strategy runs",
      made.name());
  static_cast<void>(value_or_throw(ask<msg<wire::OptimizerInUse>>(world, made.owner(), message)));
}

} // namespace

variable strategy::make_variable(std::string name, const tensor& initial,
                                 const variable_options& options) {
  if (!layout_.group) {
    check_variable(name, initial, options);
    return add_variable(std::move(name), initial, options);
  }
  context_check::blocking("make_variable", *this);
  return cross_replica(
    [=](cross_replica_context& context) { return context.make_variable(name, initial, options); });
}

void strategy::check_variable(const std::string& name, const tensor& initial,
                              const variable_options& options) const {
  context_check::cross_replica("make_variable", *this);
  check_on_host(initial);
  check_new_variable(variables_, name, initial);
  check_options(name, initial, options, layout_);
}

// The properties that have to be the same in all processes, beside dtype and shape.
std::string strategy::describe_variable(const std::string& name, const variable_options& options) {
  auto trained = !options.trainable ? "" : *options.trainable ? ", trainable" : ", not trainable";
  return fmt::format("initial value of variable '{}' ({}, {}{})", name,
                     to_string(options.synchronization), to_string(options.aggregation), trained);
}

// Describes a variable that has no actors yet.
std::shared_ptr<variable::data> strategy::new_variable(std::string name, const tensor& initial,
                                                       const variable_options& options) const {
  auto made = std::make_shared<variable::data>();
  made->form = {std::move(name), initial.type(), initial.extents()};
  auto is_on_read = options.synchronization == variable_synchronization::on_read;
  if (is_on_read && layout_.mirrors_variables) // where all share it, there is nothing to make one
    made->synchronization = variable_synchronization::on_read;
  made->aggregation = options.aggregation;
  made->trainable = options.trainable.value_or(!is_on_read);
  made->made_by = this;
  made->devices = layout_.mirrors_variables ? layout_.worker_devices : layout_.parameter_devices;
  if (!layout_.mirrors_variables) made->devices.resize(1);
  made->index = variables_.size();
  auto frame = context_stack::current().top();
  auto is_beside = frame.owner == this && frame.beside;
  made->place_of
    = is_beside ? variables_[*frame.beside].data_->place_of : static_cast<uint32_t>(made->index);
  return made;
}

variable strategy::add_variable(std::string name, const tensor& initial,
                                const variable_options& options) {
  auto data = new_variable(std::move(name), initial, options);
  auto saved = extended_->deferred().of(data->form);
  spawn_actors(*data, initial);
  const auto& made = variables_.emplace_back(variable{data});
  if (!saved) return made;
  extended_->deferred().forget(made.name());
  if (made.owner())
    restore_saved(world_, made, layout_.owner_copies == 1 && made.is_here(), *saved);
  return made;
}

// Spawns the actors of a variable that stand here: the owner, or a cache or failover client that
// speaks for it, and the mirror.
void strategy::spawn_actors(variable::data& made, const tensor& initial) {
  auto owner_name = "owner " + made.form.name;
  made.is_here = layout_.placement == nullptr || enter_owner(owner_name, made.form);
  auto rule = rule_of(made.synchronization, made.aggregation);
  variable_owner_config config{made.form, initial,
                               &world_,   static_cast<uint32_t>(made.devices.size()),
                               rule,      num_replicas_in_sync() - num_replicas_};
  config.variable_index = static_cast<uint32_t>(made.index);
  auto is_alike = rule == copy_rule::alike; // others are changed by hand, which the host does
  if (made.is_here && is_alike) config.places = places_of(made.place_of);
  if (!config.places.empty()) made.places.clear();
  for (const auto& place : config.places)
    made.places.push_back(place.owned->where());
  if (made.is_here && layout_.owner_copies > 1)
    config.directory = find_directory(*this, owner_name);
  if (made.is_here)
    made.owner = made.owners_here[0] = spawn_owner(made, owner_name, config);
  else if (layout_.owner_copies == 1)
    made.owner = spawn_cache(made, owner_name);
  if (layout_.owner_copies > 1) replicate(made, std::move(config));
}

// Mirrored variables lie on all devices, others on one of them in turn.
std::vector<processor> strategy::places_of(uint32_t owner) {
  if (layout_.mirrors_variables) return owner_devices_.processors_of(owner);
  auto place = owner_devices_.processor_of(owner);
  return place ? std::vector{*place} : std::vector<processor>{};
}

// Whether the owner stands here: beside another variable's, or where its turn has come.
bool strategy::enter_owner(const std::string& owner_name, const variable_form& form) {
  auto& placement = *layout_.placement;
  if (auto frame = context_stack::current().top(); frame.owner == this && frame.beside)
    return value_or_throw(
      placement.enter_beside(owner_name, "owner " + variables_[*frame.beside].name()));
  auto load = layout_.variable_load(form.extents, form.type);
  return value_or_throw(placement.enter(owner_name, load));
}

replicated_owner_actor strategy::spawn_owner(variable::data& made, const std::string& name,
                                             variable_owner_config config) {
  auto owner = world_.system().spawn(variable_owner, std::move(config));
  made.actors_here.push_back(caf::actor_cast<caf::actor>(owner));
  world_.introduce(owner.id(), name);
  if (layout_.placement != nullptr) layout_.placement->put(name, owner);
  return owner;
}

// A cache speaks for an owner of another process.
variable_owner_actor strategy::spawn_cache(variable::data& made, const std::string& owner_name) {
  auto owner
    = value_or_throw(layout_.placement->find<variable_owner_actor>("strategy", owner_name));
  if (!owner) return owner; // null, if no actor here ever speaks to it
  auto cache = world_.system().spawn(variable_cache, variable_cache_config{owner});
  made.actors_here.push_back(caf::actor_cast<caf::actor>(cache));
  world_.introduce(cache.id(), "cache of " + owner_name);
  return cache;
}

// An owner is spawned before it waits for its mirror, so neither waits in vain. A process that
// holds neither of them does not wait: one of them may be gone already.
void strategy::replicate(variable::data& made, variable_owner_config config) {
  auto& placement = *layout_.placement;
  auto name = made.form.name;
  auto owner_name = "owner " + name;
  auto mirror_name = "mirror owner " + name;
  auto find = [&placement](const std::string& viewer, const std::string& actor_name) {
    return value_or_throw(placement.find<replicated_owner_actor>(viewer, actor_name));
  };
  if (value_or_throw(placement.enter(mirror_name))) {
    config.mirrored = find(mirror_name, owner_name);
    config.directory = find_directory(*this, mirror_name);
    made.owners_here[1] = spawn_owner(made, mirror_name, std::move(config));
  }
  if (made.is_here) caf::anon_send(made.owners_here[0], use_mirror{find(owner_name, mirror_name)});
  if (placement.leads())
    caf::anon_send(directory_,
                   watch_owner{name,
                               find(directory_name, owner_name),
                               find(directory_name, mirror_name),
                               {placement.where(owner_name), placement.where(mirror_name)}});
  auto client = spawn_failover_client(
    *this, "strategy", {.variable = static_cast<uint32_t>(made.index), .name = name});
  made.actors_here.push_back(caf::actor_cast<caf::actor>(client));
  made.owner = client;
}

} // namespace troupe
