// SPDX-License-Identifier: Apache-2.0
// Runs functions on replicas and across them, and reads and changes variables from outside.
#include "strategies/contexts/strategy.hpp"

#include "actors/recording/seconds.hpp"
#include "actors/replication/directory.hpp"
#include "actors/training/replica.hpp"
#include "actors/world/ask.hpp"
#include "actors/world/completion.hpp"
#include "actors/world/compute_device.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/training_message.hpp"
#include "strategies/contexts/owner_replication.hpp"
#include "strategies/contexts/replica_group.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/contexts/variable_bundles.hpp"
#include "strategies/reduce/on_host.hpp"

#include <algorithm>
#include <exception>
#include <fmt/format.h>
#include <future>

namespace troupe {

namespace {

// The number of variables in a row that share a stream of their device: enough to be worth a bundle
// of their own.
constexpr uint32_t owners_in_a_row = 4;

std::atomic<uint64_t> strategies_made = 0; // in this process

// Runs a user's call that waits for actors: a coroutine in an actor of its own.
task<void> run_body(activity& activity, strategy& strategy, context_frame entered,
                    cross_replica_body body,
                    std::shared_ptr<std::promise<std::shared_ptr<void>>> result,
                    completion<void> over) {
  context_stack stack;
  activity.set_surroundings(&stack);
  stack.push(entered);
  try {
    cross_replica_context context{strategy, activity};
    auto running = body(context);
    result->set_value(co_await running);
  } catch (...) {
    result->set_exception(std::current_exception());
  }
  activity.set_surroundings(nullptr);
  over({});
}

void check_gather(const strategy& strategy) {
  auto frame = context_stack::current().top();
  if (frame.kind == context_kind::replica && frame.owner == &strategy)
    throw_failure(errc::wrong_context,
                  "gather was called in {}. Method requires being in cross-replica context, use "
                  "get_replica_context().all_gather()",
                  describe(frame));
  context_check::cross_replica("gather", strategy);
}

// How long replicas that were told to stop may take to do so.
job_time time_to_stop(job_time deadline) {
  return std::min<job_time>(std::chrono::seconds{5}, deadline);
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
  : world_(world), number_(strategies_made++), layout_(checked(std::move(layout))),
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
  return {.group = layout_.group.get(),
          .devices = &devices_,
          .operations = layout_.cross_device_operations,
          .replicas = num_replicas_in_sync(),
          .run_count = run_count_,
          .offload = offload};
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
  auto is_here = [](const variable& variable) {
    const auto& [owner, mirror] = variable.owners_here();
    return owner || mirror;
  };
  if (std::uncaught_exceptions() > 0 || std::ranges::none_of(variables_, is_here)) return;
  static_cast<void>(end_of(presence_).comes(world_, layout_.deadline));
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
  end_actor(world_, communicator, caf::exit_reason::user_shutdown, time_to_stop(layout_.deadline));
}

void strategy::leave_others() {
  if (!layout_.placement || !layout_.placement->leads()) presence_ = nullptr;
  leave_group(false);
}

std::vector<variable> strategy::trainable_variables() const {
  std::vector<variable> result;
  std::ranges::copy_if(variables_, std::back_inserter(result), &variable::trainable);
  return result;
}

tensor strategy::read(const variable& source) {
  context_check::waiting("read of the strategy",
                         "await read of the context that your function was given");
  check_same_world("read", world_, source);
  if (layout_.group && source.synchronization() == variable_synchronization::on_read)
    return cross_replica([source](cross_replica_context& context) { return context.read(source); });
  return value_of(ask<msg<wire::VariableSnapshot>>(world_, source.owner(), make_read_variable()));
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
  return reduce(op, copies_of("reduce", value));
}

std::vector<tensor> strategy::experimental_local_results(const variable& variable) {
  if (!layout_.mirrors_variables) return {read(variable)};
  return copies_of("experimental_local_results", variable).local_results();
}

// The copies that the replicas of this process have of a variable.
distributed_value<tensor> strategy::copies_of(std::string_view call, const variable& source) {
  context_check::blocking(call, *this);
  check_same_world(call, world_, source);
  return cross_replica(
    [source](cross_replica_context& context) { return context.read_each(source); });
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
    num_replicas_, seconds(layout_.deadline));
}

std::shared_ptr<void> strategy::run_cross_replica(cross_replica_body body) {
  auto result = std::make_shared<std::promise<std::shared_ptr<void>>>();
  completion<void> over;
  replica_config config{.world = &world_};
  context_frame entered{.kind = context_kind::cross_replica, .owner = this};
  if (auto around = context_stack::current().top(); around.owner == this)
    entered.beside = around.beside;
  config.body = [this, entered, body = std::move(body), result, over](activity& activity) {
    return run_body(activity, *this, entered, body, result, over);
  };
  auto host = world_.system().spawn(replica, std::move(config));
  world_.introduce(host.id(), "cross-replica");
  if (!over.comes(world_, timeout())) {
    end_actor(world_, host, caf::exit_reason::kill,
              time_to_stop(layout_.deadline)); // it refers to this strategy
    throw_failure(errc::deadline_exceeded,
                  "a cross-replica function of the {} strategy is not over after {:.1f} s",
                  layout_.name, seconds(layout_.deadline));
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
