// SPDX-License-Identifier: Apache-2.0
// The messages of which checkpoints are made, field by field.
#include "messages/message_builder.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"

namespace troupe {
namespace {

using std::chrono::nanoseconds;
using array_list = capnp::List<wire::NamedTensor>;

void write_arrays(built_message& storage, array_list::Builder target,
                  std::span<const named_payload> arrays) {
  for (size_t i = 0; i < arrays.size(); ++i) {
    auto element = target[static_cast<capnp::uint>(i)];
    element.setName(arrays[i].name);
    write_tensor(storage, element.initValue(), arrays[i].value);
  }
}

/// A message of a version and arrays.
template <class T>
msg<T> make_arrays(uint64_t version, std::span<const named_payload> arrays) {
  message_builder<T> message;
  message.body.setVersion(version);
  write_arrays(*message.storage, message.body.initArrays(static_cast<capnp::uint>(arrays.size())),
               arrays);
  return std::move(message).finish();
}

} // namespace

msg<wire::ReadState> make_read_state() {
  return message_builder<wire::ReadState>().finish();
}

msg<wire::VariableState> make_variable_state(uint64_t version,
                                             std::span<const named_payload> arrays) {
  return make_arrays<wire::VariableState>(version, arrays);
}

msg<wire::RestoreState> make_restore_state(uint64_t version,
                                           std::span<const named_payload> arrays) {
  return make_arrays<wire::RestoreState>(version, arrays);
}

msg<wire::ReadProgress> make_read_progress() {
  return message_builder<wire::ReadProgress>().finish();
}

msg<wire::ReplicaProgress> make_replica_progress(const replica_progress& progress) {
  message_builder<wire::ReplicaProgress> message;
  message.body.setReplica(progress.replica);
  message.body.setPhase(progress.computing ? wire::Phase::COMPUTING : wire::Phase::WAITING);
  message.body.setLocalStep(progress.local_step);
  message.body.setIteration(progress.iteration);
  message.body.setComputations(progress.computations);
  message.body.setRemainingNanoseconds(static_cast<uint64_t>(progress.remaining.count()));
  write_arrays(*message.storage,
               message.body.initKept(static_cast<capnp::uint>(progress.kept.size())),
               progress.kept);
  return std::move(message).finish();
}

std::vector<named_payload> read_arrays(array_list::Reader from,
                                       const std::shared_ptr<const void>& owner) {
  std::vector<named_payload> arrays;
  arrays.reserve(from.size());
  for (auto array : from)
    arrays.push_back({array.getName(), read_tensor(array.getValue(), owner)});
  return arrays;
}

replica_progress read_progress(const msg<wire::ReplicaProgress>& from) {
  auto said = from.reader();
  return {.replica = said.getReplica(),
          .computing = said.getPhase() == wire::Phase::COMPUTING,
          .local_step = said.getLocalStep(),
          .iteration = said.getIteration(),
          .computations = said.getComputations(),
          .remaining = nanoseconds(static_cast<int64_t>(said.getRemainingNanoseconds())),
          .kept = read_arrays(said.getKept(), from.owner())};
}

} // namespace troupe
