// SPDX-License-Identifier: Apache-2.0
// The messages of which checkpoints are made, field by field.
#include "messages/mapped.hpp"
#include "messages/message_builder.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

namespace troupe {
namespace {

using std::chrono::nanoseconds;
using array_list = capnp::List<wire::NamedTensor>;

void write_array(built_message& storage, wire::NamedTensor::Builder target,
                 const named_payload& array) {
  target.setName(array.name);
  write_tensor(storage, target.initValue(), array.value);
}

void write_arrays(built_message& storage, array_list::Builder target,
                  std::span<const named_payload> arrays) {
  for (size_t i = 0; i < arrays.size(); ++i)
    write_array(storage, target[static_cast<capnp::uint>(i)], arrays[i]);
}

named_payload read_array(wire::NamedTensor::Reader from, const std::shared_ptr<const void>& owner) {
  return {from.getName(), read_tensor(from.getValue(), owner)};
}

std::vector<named_payload> read_arrays(array_list::Reader from,
                                       const std::shared_ptr<const void>& owner) {
  return mapped(from, [&](auto array) { return read_array(array, owner); });
}

} // namespace

void write_state(built_message& storage, wire::VariableState::Builder target,
                 const variable_payload& state) {
  target.setVersion(state.version);
  write_tensor(storage, target.initValue(), state.value);
  target.setOptimizer(state.optimizer);
  target.setSlotsSince(state.slots_since);
  write_arrays(storage, target.initSlots(static_cast<capnp::uint>(state.slots.size())),
               state.slots);
  if (state.average) write_array(storage, target.initAverage(), *state.average);
}

msg<wire::ReadState> make_read_state() {
  return message_builder<wire::ReadState>().finish();
}

msg<wire::VariableState> make_variable_state(const variable_payload& state) {
  message_builder<wire::VariableState> message;
  write_state(*message.storage, message.body, state);
  return std::move(message).finish();
}

msg<wire::RestoreState> make_restore_state(const variable_payload& state) {
  message_builder<wire::RestoreState> message;
  write_state(*message.storage, message.body.initState(), state);
  return std::move(message).finish();
}

msg<wire::ReadProgress> make_read_progress() {
  return message_builder<wire::ReadProgress>().finish();
}

void write_progress(built_message& storage, wire::ReplicaProgress::Builder target,
                    const replica_progress& progress) {
  target.setReplica(progress.replica);
  target.setPhase(progress.computing ? wire::Phase::COMPUTING : wire::Phase::WAITING);
  target.setLocalStep(progress.local_step);
  target.setIteration(progress.iteration);
  target.setComputations(progress.computations);
  target.setRemainingNanoseconds(static_cast<uint64_t>(progress.remaining.count()));
  target.setComputeNanoseconds(static_cast<uint64_t>(progress.compute.count()));
  write_arrays(storage, target.initKept(static_cast<capnp::uint>(progress.kept.size())),
               progress.kept);
}

msg<wire::ReplicaProgress> make_replica_progress(const replica_progress& progress) {
  message_builder<wire::ReplicaProgress> message;
  write_progress(*message.storage, message.body, progress);
  return std::move(message).finish();
}

variable_payload read_state(wire::VariableState::Reader from,
                            const std::shared_ptr<const void>& owner) {
  variable_payload state{.version = from.getVersion(),
                         .value = read_tensor(from.getValue(), owner),
                         .optimizer = from.getOptimizer(),
                         .slots_since = from.getSlotsSince(),
                         .slots = read_arrays(from.getSlots(), owner)};
  if (from.hasAverage()) state.average = read_array(from.getAverage(), owner);
  return state;
}

replica_progress read_progress(wire::ReplicaProgress::Reader from,
                               const std::shared_ptr<const void>& owner) {
  return {.replica = from.getReplica(),
          .computing = from.getPhase() == wire::Phase::COMPUTING,
          .local_step = from.getLocalStep(),
          .iteration = from.getIteration(),
          .computations = from.getComputations(),
          .remaining = nanoseconds(static_cast<int64_t>(from.getRemainingNanoseconds())),
          .compute = nanoseconds(static_cast<int64_t>(from.getComputeNanoseconds())),
          .kept = read_arrays(from.getKept(), owner)};
}

} // namespace troupe
