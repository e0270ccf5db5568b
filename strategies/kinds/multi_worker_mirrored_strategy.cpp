// SPDX-License-Identifier: Apache-2.0
// Joins the other processes, and lays out the strategy of this one.
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"

#include "actors/collective/collective_group.hpp"
#include "actors/gpu/device_communicator.hpp"
#include "actors/gpu/gpu.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/reduce/cross_device_choice.hpp"

#include <caf/send.hpp>

#include <algorithm>

namespace troupe {

namespace {

using options_type = multi_worker_mirrored_options;

// The communicator of this process, and its rank.
std::pair<communicator_actor, uint32_t> join(world& world, const options_type& options) {
  collective_group_options group{.size = static_cast<uint32_t>(options.workers.size()),
                                 .names = options.workers,
                                 .deadline = options.deadline};
  auto members = value_or_throw(join_collective_group(world, *options.placement, group));
  auto is_here = [](const communicator_actor& member) { return static_cast<bool>(member); };
  auto here = std::ranges::count_if(members, is_here);
  auto found = std::ranges::find_if(members, is_here);
  if (here == 1) return {*found, static_cast<uint32_t>(found - members.begin())};
  for (const auto& member : members)
    if (member) caf::anon_send_exit(member, caf::exit_reason::user_shutdown);
  throw_failure(
    errc::invalid_argument,
    "{} of the {} workers of a multi_worker_mirrored strategy stand in this process; make it "
    "in a process of each worker, and nowhere else",
    here, members.size());
}

bool has_devices(const options_type& options) {
  return options.device_collectives && options.collective_device;
}

// The communicator of this process, with a device beside it. The device has a gpu actor of its own:
// collectives wait for other processes, and no work of the replicas may wait behind them.
communicator_actor with_devices(world& world, const options_type& options,
                                const process_group& group) {
  const auto& device = options.collective_device;
  device_communicator_config config{.rank = group.rank,
                                    .size = group.size,
                                    .process = options.workers[group.rank],
                                    .host = group.communicator,
                                    .library = options.device_collectives,
                                    .device = device,
                                    .deadline = options.deadline,
                                    .world = &world};
  if (group.rank == 0) {
    auto made = options.device_collectives->make_id();
    if (!made) caf::anon_send_exit(group.communicator, caf::exit_reason::user_shutdown);
    config.id = value_or_throw(std::move(made));
  }
  config.gpu = world.system().spawn(gpu, gpu_config{device, options.deadline, &world});
  world.introduce(config.gpu.id(), fmt::format("gpu of communicator {}", group.rank));
  auto actor = world.system().spawn(device_communicator, std::move(config));
  world.introduce(actor.id(), fmt::format("device communicator {}", group.rank));
  return actor;
}

std::shared_ptr<const process_group> group_of(world& world, const options_type& options) {
  if (options.placement == nullptr) return nullptr;
  if (options.workers.empty())
    throw_failure(
      errc::invalid_argument,
      "a multi_worker_mirrored strategy was given a placement, but no workers; give it those "
      "of the server");
  if (options.workers.size() == 1) return nullptr;
  process_group group{.size = static_cast<uint32_t>(options.workers.size()),
                      .replicas_each = static_cast<uint32_t>(options.devices.size()),
                      .options = options.communication,
                      .fixed_order = options.fixed_order,
                      .timeout = options.deadline,
                      .names = options.workers,
                      .placement = options.placement};
  if (auto seconds = options.communication.timeout_seconds.value_or(0); seconds > 0)
    group.timeout = std::min(group.timeout, timeout_of(seconds));
  std::tie(group.communicator, group.rank) = join(world, options);
  if (has_devices(options)) {
    group.communicator = with_devices(world, options, group);
    group.has_devices = true;
  }
  return std::make_shared<const process_group>(std::move(group));
}

// Whether devices may make sums: if that was asked for, or if the choice is automatic and no order
// is promised.
bool wants_devices(const options_type& options) {
  auto implementation = options.communication.implementation;
  return implementation == communication_implementation::nccl
         || (implementation == communication_implementation::automatic && !options.fixed_order);
}

// Where GPUs were named, they reduce as well. @param devices Canonical names.
void find_collectives(options_type& options, const std::vector<std::string>& devices) {
  if (!wants_devices(options) || has_devices(options) || !are_gpus(devices)) return;
  auto library = options.gpus.open_collectives();
  if (!library && options.communication.implementation == communication_implementation::automatic)
    return;
  options.device_collectives = value_or_throw(std::move(library));
  options.collective_device = open_gpus({&devices.front(), 1}, options.gpus).front();
}

// The operations of a process that is alone: in the order of replicas, if that is promised.
std::shared_ptr<const cross_device_ops> operations_of_one(const strategy_layout& layout,
                                                          const options_type& options) {
  const auto& devices = layout.worker_devices;
  return wants_devices(options)
           ? choose_cross_device_ops(devices, options.gpus, layout.compute_devices)
           : reduce_on_one_of(devices, options.gpus, layout.compute_devices);
}

strategy_layout layout_of(world& world, options_type options) {
  options.communication.validate();
  auto layout = mirrored_layout(std::move(options.devices));
  options.devices = layout.worker_devices;
  layout.name = "multi_worker_mirrored";
  layout.makes_input_per_replica = false;
  layout.experimental_between_graph = true;
  layout.deadline = options.deadline;
  layout.compute_devices = options.compute_devices;
  layout.variable_devices = options.variable_devices;
  open_named_devices(layout, options.gpus);
  find_collectives(options, layout.worker_devices);
  static_cast<void>(algorithm_of(options.communication.implementation, has_devices(options)));
  layout.group = group_of(world, options);
  if (!layout.group) layout.cross_device_operations = operations_of_one(layout, options);
  auto leads = layout.group == nullptr || layout.group->rank == 0;
  layout.should_checkpoint = leads;
  layout.should_save_summary = leads;
  return layout;
}

} // namespace

multi_worker_mirrored_strategy::multi_worker_mirrored_strategy(
  troupe::world& world, multi_worker_mirrored_options options)
  : strategy(world, layout_of(world, std::move(options))) {
  check_replicas();
}

// A process with another number of replicas would mistake the gradients of one replica for those of
// another.
void multi_worker_mirrored_strategy::check_replicas() {
  if (!layout().group) return;
  auto compare = [](cross_replica_context& context) {
    tensor nothing{dtype::i64, {1}};
    nothing.mutable_values<int64_t>()[0] = 0;
    auto name = fmt::format("{} with {} replicas each, {}", context.strategy().layout().name,
                            context.group()->replicas_each,
                            context.group()->fixed_order ? "in fixed order" : "in any order");
    return context.reducing().share_first(name, nothing);
  };
  try {
    static_cast<void>(cross_replica(compare));
  } catch (const failure& failed) {
    if (failed.reason().code != errc::invalid_argument) throw;
    throw_failure(errc::failed_precondition,
                  "{}; give all processes the same communication, and as many devices each",
                  failed.what());
  }
}

} // namespace troupe
