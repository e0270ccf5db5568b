// SPDX-License-Identifier: Apache-2.0
// Making variables, and reading them from outside the replicas.
#include "strategies/contexts/strategy.hpp"

#include "actors/replication/directory.hpp"
#include "actors/replication/variable_cache.hpp"
#include "actors/training/replica.hpp"
#include "actors/training/variable_owner.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/limits.hpp"
#include "messages/tensor_message.hpp"
#include "messages/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/replica_group.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/contexts/variable_bundles.hpp"
#include "strategies/reduce/on_host.hpp"
#include "strategies/values/variable_name.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <future>

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

// The number of variables in a row that share a stream of their device: enough to be worth a bundle
// of their own.
constexpr uint32_t owners_in_a_row = 4;

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

copy_rule rule_of(const variable_options& options) {
  if (options.synchronization != variable_synchronization::on_read) return copy_rule::alike;
  switch (options.aggregation) {
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
void give_saved(world& world, const variable& made, bool is_here_alone,
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

// Runs a user's call that waits for actors: a coroutine in an actor of its own.
task<void> live_once(activity& activity, strategy& of, cross_replica_body body,
                     std::shared_ptr<std::promise<std::shared_ptr<void>>> result,
                     std::shared_ptr<std::promise<void>> over) {
  context_stack stack;
  activity.set_surroundings(&stack);
  stack.push({context_kind::cross_replica, &of});
  try {
    cross_replica_context context{of, activity};
    auto running = body(context);
    result->set_value(co_await running);
  } catch (...) {
    result->set_exception(std::current_exception());
  }
  activity.set_surroundings(nullptr);
  over->set_value();
}

void check_gather(const strategy& of) {
  auto at = context_stack::current().top();
  if (at.kind == context_kind::replica && at.owner == &of)
    throw_failure(errc::wrong_context,
                  "gather was called in {}. Method requires being in cross-replica context, use "
                  "get_replica_context().all_gather()",
                  describe(at));
  context_check::cross_replica("gather", of);
}

// How long replicas that were told to stop may take to do so.
job_time time_to_stop(job_time deadline) {
  return std::min<job_time>(std::chrono::seconds{5}, deadline);
}

// Has an actor end, and waits for that until the timeout is over.
void end_actor(world& world, const caf::actor& who, caf::exit_reason how, job_time timeout) {
  auto ended = std::make_shared<std::promise<void>>();
  auto over = ended->get_future();
  who->attach_functor([ended] { ended->set_value(); });
  caf::anon_send_exit(who, how);
  static_cast<void>(world.run_until(over, timeout));
}

// Before anything is made of it.
strategy_layout checked(strategy_layout layout) {
  check_layout(layout);
  return layout;
}

task<void> compute_for(strategy* owner, activity& host, std::function<void()> work) {
  std::function<void()> guarded = [work = std::move(work), owner] {
    context_guard entered{{context_kind::computing, owner}};
    work();
  };
  auto working = host.offload(std::move(guarded));
  co_await working;
}

} // namespace

strategy::strategy(troupe::world& world, strategy_layout layout)
  : world_(world), layout_(checked(std::move(layout))),
    num_replicas_(static_cast<uint32_t>(layout_.worker_devices.size())),
    devices_(world, layout_.compute_devices, layout_.device_deadline),
    owner_devices_(world, layout_.variable_devices, layout_.device_deadline, "gpu of variables",
                   owners_in_a_row),
    extended_(std::make_unique<strategy_extended>(*this)),
    bundles_(std::make_unique<variable_bundles>(*this)) {
  if (!layout_.cross_device_operations)
    layout_.cross_device_operations = std::make_shared<reduction_to_one_device>();
  show_presence();
  open_directory();
}

reduction_site strategy::site_of_reductions() {
  auto offload = [this](activity& host, std::function<void()> work) {
    return compute_for(this, host, std::move(work));
  };
  return {layout_.group.get(), &devices_, layout_.cross_device_operations, num_replicas_in_sync(),
          offload};
}

strategy::~strategy() {
  auto& stack = context_stack::current();
  if (stack.top().is_set && stack.top().owner == this) stack.frames_.clear();
  bundles_->end();
  let_go();
  leave_group(std::uncaught_exceptions() == 0);
  for (const auto& variable : variables_)
    for (const auto& actor : variable.data_->actors_here)
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  for (const auto& actor : returned_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  if (directory_) caf::anon_send_exit(directory_, caf::exit_reason::user_shutdown);
}

// The chief's process reads variables after training, so the processes that hold some must know how
// long they are needed.
void strategy::show_presence() {
  auto* placement = layout_.placement;
  if (placement == nullptr || placement->others().empty()) return;
  if (value_or_throw(placement->enter("strategy"))) {
    presence_ = world_.system().spawn([](caf::event_based_actor*) -> caf::behavior {
      return {[](give_up) {}}; // never sent; without a behaviour there is no actor
    });
    world_.introduce(presence_.id(), "strategy");
    placement->put("strategy", presence_);
  } else {
    presence_ = value_or_throw(placement->find<caf::actor>("strategy", "strategy"));
  }
}

void strategy::open_directory() {
  if (layout_.owner_copies == 1) return;
  auto& placement = *layout_.placement;
  if (!value_or_throw(placement.enter(directory_name))) return;
  directory_ = world_.system().spawn(directory, [&placement](uint32_t lost, uint32_t lost_by) {
    placement.part_with(lost, lost_by);
  });
  world_.introduce(directory_.id(), directory_name);
  placement.put(directory_name, directory_);
}

void strategy::let_go() {
  if (!presence_) return;
  if (layout_.placement->leads())
    return caf::anon_send_exit(presence_, caf::exit_reason::user_shutdown);
  auto is_here = [](const variable& one) {
    const auto& [owner, mirror] = one.owners_here();
    return owner || mirror;
  };
  if (std::uncaught_exceptions() > 0 || std::ranges::none_of(variables_, is_here)) return;
  auto ended = std::make_shared<std::promise<void>>();
  auto over = ended->get_future();
  caf::actor_cast<caf::abstract_actor*>(presence_)->attach_functor([ended] { ended->set_value(); });
  static_cast<void>(world_.run_until(over, layout_.deadline));
}

// A process that is ahead must not leave while others still need its messages. After a failure
// there is nothing to wait for.
void strategy::leave_group(bool waits) {
  if (!layout_.group) return;
  const auto& communicator = layout_.group->communicator;
  if (waits) {
    collective_call last{.kind = collective_kind::barrier,
                         .name = "end of the strategy",
                         .timeout = layout_.group->timeout};
    static_cast<void>(ask<collective_result>(world_, communicator, last));
  }
  // The communicator sends its last messages before it ends. Only then may its node leave.
  end_actor(world_, caf::actor_cast<caf::actor>(communicator), caf::exit_reason::user_shutdown,
            time_to_stop(layout_.deadline));
}

void strategy::leave_others() {
  if (!layout_.placement || !layout_.placement->leads()) presence_ = nullptr;
  leave_group(false);
}

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

variable strategy::add_variable(std::string name, const tensor& initial,
                                const variable_options& options) {
  auto data = std::make_shared<variable::data>();
  data->form = {std::move(name), initial.type(), initial.extents()};
  auto saved = extended_->deferred().of(data->form);
  auto is_on_read = options.synchronization == variable_synchronization::on_read;
  if (is_on_read && layout_.mirrors_variables) // where all share it, there is nothing to make one
    data->synchronization = variable_synchronization::on_read;
  data->aggregation = options.aggregation;
  data->trainable = options.trainable.value_or(!is_on_read);
  data->made_by = this;
  data->devices = layout_.mirrors_variables ? layout_.worker_devices : layout_.parameter_devices;
  if (!layout_.mirrors_variables) data->devices.resize(1);
  auto rule = data->synchronization == variable_synchronization::on_read ? rule_of(options)
                                                                         : copy_rule::alike;
  auto owner_name = "owner " + data->form.name;
  auto* placement = layout_.placement;
  data->index = variables_.size();
  data->is_here = placement == nullptr || enter_owner(owner_name, data->form);
  variable_owner_config config{data->form, initial,
                               &world_,    static_cast<uint32_t>(data->devices.size()),
                               rule,       num_replicas_in_sync() - num_replicas_};
  config.variable_index = static_cast<uint32_t>(data->index);
  auto at = context_stack::current().top();
  auto is_beside = at.owner == this && at.beside;
  data->place_of = is_beside ? variables_[*at.beside].data_->place_of : config.variable_index;
  auto is_alike = rule == copy_rule::alike; // others are changed by hand, which the host does
  if (data->is_here && is_alike) config.places = places_of(data->place_of);
  if (!config.places.empty()) data->places.clear();
  for (const auto& place : config.places)
    data->places.push_back(place.owned->where());
  if (data->is_here && layout_.owner_copies > 1)
    config.directory = find_directory(*this, owner_name);
  if (data->is_here)
    data->owner = data->owners_here[0] = spawn_owner(*data, owner_name, config);
  else if (layout_.owner_copies == 1)
    data->owner = spawn_cache(*data, owner_name);
  if (layout_.owner_copies > 1) replicate(*data, std::move(config));
  const auto& made = variables_.emplace_back(variable{data});
  if (!saved) return made;
  extended_->deferred().forget(made.name());
  if (made.owner()) give_saved(world_, made, layout_.owner_copies == 1 && made.is_here(), *saved);
  return made;
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
  if (auto at = context_stack::current().top(); at.owner == this && at.beside)
    return value_or_throw(
      placement.enter_beside(owner_name, "owner " + variables_[*at.beside].name()));
  auto load = layout_.variable_load(form.extents, form.type);
  return value_or_throw(placement.enter(owner_name, load));
}

replicated_owner_actor strategy::spawn_owner(variable::data& of, const std::string& name,
                                             variable_owner_config config) {
  auto owner = world_.system().spawn(variable_owner, std::move(config));
  of.actors_here.push_back(caf::actor_cast<caf::actor>(owner));
  world_.introduce(owner.id(), name);
  if (layout_.placement != nullptr) layout_.placement->put(name, owner);
  return owner;
}

// A cache speaks for an owner of another process.
variable_owner_actor strategy::spawn_cache(variable::data& of, const std::string& owner_name) {
  auto owner
    = value_or_throw(layout_.placement->find<variable_owner_actor>("strategy", owner_name));
  if (!owner) return owner; // null, if no actor here ever speaks to it
  auto cache = world_.system().spawn(variable_cache, variable_cache_config{owner});
  of.actors_here.push_back(caf::actor_cast<caf::actor>(cache));
  world_.introduce(cache.id(), "cache of " + owner_name);
  return cache;
}

// An owner is spawned before it waits for its mirror, so neither waits in vain. A process that
// holds neither of them does not wait: one of them may be gone already.
void strategy::replicate(variable::data& of, variable_owner_config config) {
  auto& placement = *layout_.placement;
  auto name = of.form.name;
  auto owner_name = "owner " + name;
  auto mirror_name = "mirror owner " + name;
  auto find = [&placement](const std::string& viewer, const std::string& whom) {
    return value_or_throw(placement.find<replicated_owner_actor>(viewer, whom));
  };
  if (value_or_throw(placement.enter(mirror_name))) {
    config.mirrored = find(mirror_name, owner_name);
    config.directory = find_directory(*this, mirror_name);
    of.owners_here[1] = spawn_owner(of, mirror_name, std::move(config));
  }
  if (of.is_here) caf::anon_send(of.owners_here[0], use_mirror{find(owner_name, mirror_name)});
  if (placement.leads())
    caf::anon_send(directory_,
                   watch_owner{name,
                               find(directory_name, owner_name),
                               find(directory_name, mirror_name),
                               {placement.where(owner_name), placement.where(mirror_name)}});
  auto speaks = spawn_failover_client(*this, "strategy",
                                      {.variable = static_cast<uint32_t>(of.index), .name = name});
  of.actors_here.push_back(caf::actor_cast<caf::actor>(speaks));
  of.owner = speaks;
}

std::vector<variable> strategy::trainable_variables() const {
  std::vector<variable> result;
  std::ranges::copy_if(variables_, std::back_inserter(result), &variable::trainable);
  return result;
}

tensor strategy::read(const variable& source) {
  context_check::waiting("read of the strategy",
                         "await read of the context that your function was given");
  if (layout_.group && source.synchronization() == variable_synchronization::on_read)
    return cross_replica([source](cross_replica_context& context) { return context.read(source); });
  auto snapshot = value_or_throw(
    ask<msg<wire::VariableSnapshot>>(world_, source.owner(), make_read_variable()));
  return read_tensor(snapshot.reader().getValue(), snapshot.owner());
}

tensor strategy::assign(const variable& target, variable_operand value) {
  context_check::blocking("assign", *this);
  return cross_replica([target, value = std::move(value)](cross_replica_context& context) {
    return context.assign(target, value);
  });
}

tensor strategy::assign_add(const variable& target, variable_operand delta) {
  context_check::blocking("assign_add", *this);
  return cross_replica([target, delta = std::move(delta)](cross_replica_context& context) {
    return context.assign_add(target, delta);
  });
}

tensor strategy::assign_sub(const variable& target, variable_operand delta) {
  context_check::blocking("assign_sub", *this);
  return cross_replica([target, delta = std::move(delta)](cross_replica_context& context) {
    return context.assign_sub(target, delta);
  });
}

tensor strategy::gather(const distributed_value<tensor>& value, int64_t axis) {
  check_gather(*this);
  if (num_replicas_in_sync() == 1) return value.select(0);
  auto components = value.for_each_of(num_replicas_);
  if (!layout_.group && std::ranges::none_of(components, is_on_device))
    return cross_device_ops::gather(components, axis);
  context_check::blocking("gather", *this);
  return cross_replica(
    [value, axis](cross_replica_context& context) { return context.gather(value, axis); });
}

tensor strategy::gather(const tensor& value, int64_t axis) {
  return gather(distributed_value<tensor>::mirrored(value, num_replicas_), axis);
}

void strategy::gather(const distributed_value<indexed_slices>& /*value*/, int64_t /*axis*/) {
  check_gather(*this);
  throw_failure(errc::unimplemented,
                "gather does not take indexed_slices; gather indices and values");
}

tensor strategy::reduce(reduce_op op, const variable& value) {
  context_check::blocking("reduce", *this);
  auto copies = run([value](replica_context& context) -> task<tensor> {
    auto reading = context.read(value);
    auto copy = co_await reading;
    co_return copy;
  });
  return reduce(op, copies);
}

std::vector<tensor> strategy::experimental_local_results(const variable& of) {
  if (!layout_.mirrors_variables) return {read(of)};
  context_check::blocking("experimental_local_results", *this);
  auto copies = run([of](replica_context& context) -> task<tensor> {
    auto reading = context.read(of);
    auto copy = co_await reading;
    co_return copy;
  });
  return experimental_local_results(copies);
}

// A collective that begins at the last moment still has its time: its end names what is missing.
job_time strategy::timeout() const {
  return layout_.deadline + (layout_.group ? layout_.group->timeout : job_time{0});
}

run_outcome strategy::run_on_replicas(std::vector<replica_body> bodies) {
  if (!layout_.runs_replicas)
    throw_failure(
      errc::unimplemented,
      "a {} strategy does not `run` a function on all replicas at once; give it to `train`",
      layout_.name);

  struct ending {
    std::promise<void> over;
    run_outcome outcome;
  };

  auto end = std::make_shared<ending>();
  auto over = end->over.get_future();
  bundles_->make();
  auto group = start_replicas(*this, std::move(bodies), [end](run_outcome outcome) {
    end->outcome = std::move(outcome);
    end->over.set_value();
  });
  auto give_up_on = [&] {
    world_.call([meeting = group.meeting] { caf::anon_send(meeting, give_up{}); });
    return world_.run_until(over, time_to_stop(layout_.deadline));
  };
  auto outcome = [&] {
    if (end->outcome.thrown) ++failed_runs_;
    return std::move(end->outcome);
  };
  if (world_.run_until(over, timeout())) return outcome();
  if (give_up_on()) return outcome(); // the replicas that waited have left
  group.kill_replicas();
  if (give_up_on()) return outcome(); // it names the replicas that have not left
  group.kill();
  ++failed_runs_;
  throw_failure(
    errc::deadline_exceeded,
    "a run on {} replicas is not over after {:.1f} s, and holds all threads of the world",
    num_replicas_, std::chrono::duration<double>(layout_.deadline).count());
}

std::shared_ptr<void> strategy::run_cross_replica(cross_replica_body body) {
  auto result = std::make_shared<std::promise<std::shared_ptr<void>>>();
  auto ended = std::make_shared<std::promise<void>>();
  auto over = ended->get_future();
  replica_config config{.world = &world_};
  config.body = [this, body = std::move(body), result, ended](activity& activity) {
    return live_once(activity, *this, body, result, ended);
  };
  auto host = world_.system().spawn(replica, std::move(config));
  world_.introduce(host.id(), "cross-replica");
  if (auto turned = world_.run_until(over, timeout()); !turned) {
    end_actor(world_, caf::actor_cast<caf::actor>(host), caf::exit_reason::kill,
              time_to_stop(layout_.deadline)); // it refers to this strategy
    throw_failure(errc::deadline_exceeded,
                  "a cross-replica function of the {} strategy is not over after {:.1f} s",
                  layout_.name, std::chrono::duration<double>(layout_.deadline).count());
  }
  return result->get_future().get();
}

namespace {

strategy_layout layout_of(const parameter_server_options& options) {
  auto leads = options.placement == nullptr || options.placement->leads();
  strategy_layout layout{.name = "parameter_server",
                         .parameter_devices = {"cpu:0"},
                         .runs_replicas = false,
                         .experimental_between_graph = true,
                         .experimental_should_init = leads,
                         .should_checkpoint = leads,
                         .should_save_summary = leads,
                         .placement = options.placement,
                         .owner_copies = options.replicate_owners,
                         .variable_load = options.variable_load,
                         .variable_partitioner = options.variable_partitioner,
                         .compute_devices = options.compute_devices,
                         .variable_devices = options.variable_devices,
                         .device_deadline = options.device_deadline};
  if (auto given = static_cast<int32_t>(options.replicas); given < 0) // else 2^32 too many
    throw_failure(errc::invalid_argument,
                  "replicas is {}; a parameter_server strategy needs at least 1", given);
  const auto* kind = options.compute_devices.empty() ? "cpu" : "gpu";
  for (uint32_t i = 0; i < options.replicas; ++i)
    layout.worker_devices.push_back(fmt::format("{}:{}", kind, i));
  return layout;
}

} // namespace

parameter_server_strategy::parameter_server_strategy(troupe::world& world,
                                                     parameter_server_options options)
  : strategy(world, layout_of(options)) {}

} // namespace troupe
