// SPDX-License-Identifier: Apache-2.0
// Which injection a message falls under, and the draws.
#include "simulation/network/fault_injector.hpp"

#include "kernels/tensor/random.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace troupe {

namespace {

// Only messages that replicas ask for again may be lost: their questions, and the answers.
constexpr std::array<std::string_view, 7> repeatable{
  "ReadVariable", "ChangeVariable", "VariableSnapshot", "PushGradient", "PushReply",
  "TakeToken",    "Token"};

} // namespace

std::span<const std::string_view> repeatable_messages() {
  return repeatable;
}

uint64_t fault_injector::begin(fault_injection injection) {
  injections_.emplace(injection_count_, std::move(injection));
  return injection_count_++;
}

message_faults fault_injector::draw(node_index from, node_index to, std::string_view kind) {
  message_faults faults;
  const auto* probabilities = probabilities_of(from, to, kind);
  if (probabilities == nullptr) return faults;
  auto end = nodes_.replica_end(from, to);
  random_stream stream{random_key{seed_, "luck", nodes_.replica_at(end), draws_[end]++}};
  faults.is_lost = stream.uniform() < probabilities->lost;
  if (faults.is_lost) return faults;
  faults.is_duplicated = stream.uniform() < probabilities->duplicated;
  if (stream.uniform() < probabilities->reordered) faults.late = probabilities->late;
  return faults;
}

const fault_probabilities* fault_injector::probabilities_of(node_index from, node_index to,
                                                            std::string_view kind) const {
  if (injections_.empty() || std::ranges::count(repeatable, kind) == 0) return nullptr;
  if (!nodes_.is_replica(nodes_.replica_end(from, to)))
    return nullptr; // parameter servers do not ask each other again
  const fault_injection* chosen = nullptr;
  for (const auto& [number, injection] : injections_) {
    const auto& nodes = injection.nodes;
    auto is_of_nodes = nodes.empty() || nodes.contains(from) || nodes.contains(to);
    auto is_of_kind = injection.kind == kind;
    if (!is_of_nodes || !(is_of_kind || injection.kind.empty())) continue;
    if (chosen == nullptr || is_of_kind || chosen->kind.empty()) chosen = &injection;
  }
  return chosen == nullptr ? nullptr : &chosen->probabilities;
}

} // namespace troupe
