// SPDX-License-Identifier: Apache-2.0
// The way of a message from node to node.
#include "simulation/network/simulated_transport.hpp"

#include "actors/net/parcel_codec.hpp"
#include "messages/errors/assert.hpp"
#include "simulation/network/end_of_time.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace troupe {

namespace {

constexpr std::string_view gradient_kind = "PushGradient";
constexpr std::string_view snapshot_kind = "VariableSnapshot";
constexpr std::string_view cancel_kind = "CancelStep";

uint64_t link_of(const in_flight_message& message) {
  return uint64_t{message.from.node} << 32 | message.to();
}

} // namespace

simulated_transport::simulated_transport(const network_options& options, simulated_nodes& nodes,
                                         timed_events& events, const blocked_links& blocked,
                                         fault_injector& injector)
  : options_(options), nodes_(nodes), events_(events), blocked_(blocked), injector_(injector),
    links_(nodes.node_count()) {
  if (options_.bytes_per_second > 0)
    transfers_.emplace(options_.bytes_per_second, events_,
                       [this](in_flight_message message) { travel(std::move(message)); });
}

void simulated_transport::send(const node_address& from, parcel parcel) {
  if (!nodes_.is_alive(from)) return;
  auto own_bytes = check_travels(parcel, options_.messages.get());
  if (!own_bytes) return refuse(from, parcel, own_bytes.error());
  nodes_.show(from.node, parcel.to.at.node);
  nodes_.show(parcel.to.at.node, from.node);
  const auto* kind = kind_of(parcel);
  set_out({from, std::move(parcel), kind, events_.now(), *own_bytes});
}

void simulated_transport::set_out(in_flight_message message) {
  if (blocked_.is_frozen(message.from.node)) return held_.push_back(std::move(message));
  if (is_recalled(message.parcel)) return recall(message);
  message.is_out = true;
  auto faults = injector_.draw(message.from.node, message.to(), message.kind);
  if (faults.is_lost) return outcomes_.count(message_outcome::lost, message);
  if (faults.is_duplicated) {
    outcomes_.count(message_outcome::duplicated, message);
    leave(message);
  }
  if (faults.late) {
    outcomes_.count(message_outcome::reordered, message);
    message.late = *faults.late;
  }
  leave(std::move(message));
}

void simulated_transport::leave(in_flight_message message) {
  auto bytes = transfers_ ? bytes_of(message) : 0;
  if (bytes == 0) return travel(std::move(message));
  auto factor = factor_of(message);
  transfers_->begin(std::move(message), bytes, factor);
}

// A message that is late on purpose keeps no order.
void simulated_transport::travel(in_flight_message message) {
  auto time = later(events_.now(), message.late);
  if (options_.latency) {
    auto latency = options_.latency(passage_of(message));
    time = later(time, scaled(latency, factor_of(message)));
  }
  if (message.late == job_time{0} && bytes_of(message) == 0) {
    auto& last = last_arrival_[link_of(message)];
    time = last = std::max(last, time);
  }
  if (time <= events_.now()) return arrive(std::move(message));
  events_.at(time, [this, message = std::move(message)]() mutable { arrive(std::move(message)); });
}

passage simulated_transport::passage_of(const in_flight_message& message) {
  auto end = nodes_.replica_end(message.from.node, message.to());
  return {nodes_.replica_at(end), message.kind, links_[end].messages++};
}

double simulated_transport::factor_of(const in_flight_message& message) const {
  return std::max(links_[message.from.node].factor, links_[message.to()].factor);
}

uint64_t simulated_transport::bytes_of(const in_flight_message& message) const {
  if (message.kind == gradient_kind) return options_.gradient_bytes / options_.owners;
  if (message.kind == snapshot_kind) return options_.model_bytes / options_.owners;
  return message.own_bytes;
}

void simulated_transport::arrive(in_flight_message message) {
  auto to = message.to();
  if (!nodes_.is_alive(message.parcel.to.at))
    return outcomes_.count(message_outcome::too_late, message);
  if (blocked_.is_blocked(message.from.node, to)) {
    outcomes_.count(message_outcome::held, message);
    return held_.push_back(std::move(message));
  }
  if (!options_.service || message.is_served || message.kind != gradient_kind)
    return hand_over(std::move(message));
  message.is_served = true;
  auto& link = links_[to];
  link.busy_until
    = later(std::max(link.busy_until, events_.now()), options_.service(to - 1, link.served++));
  events_.at(link.busy_until,
             [this, message = std::move(message)]() mutable { arrive(std::move(message)); });
}

void simulated_transport::hand_over(in_flight_message message) {
  outcomes_.count(message_outcome::delivered, message);
  auto from = message.from.node;
  auto to = message.to();
  auto here = nodes_.node_at(to);
  if (transfers_ && message.kind == cancel_kind)
    events_.at(events_.now() + job_time{1}, [this, to] { recall_transfers(to); });
  if (on_delivery)
    on_delivery({events_.now(), message.sent, from, to,
                 nodes_.replica_at(nodes_.replica_end(from, to)), message.kind,
                 &message.parcel.content});
  here->deliver(std::move(message.parcel));
}

// A node that was told to cancel may have recalled what it had on its way, if in time.
void simulated_transport::recall_transfers(node_index from) {
  for (const auto& message : transfers_->give_up_recalled(from))
    recall(message);
}

// As a link does: the request is answered at home.
void simulated_transport::recall(const in_flight_message& message) {
  outcomes_.count(message_outcome::recalled, message);
  refuse(message.from, message.parcel, {errc::cancelled, "the message was recalled"});
}

void simulated_transport::refuse(const node_address& from, const parcel& parcel,
                                 const error& reason) {
  auto refusal = refusal_of(parcel, reason);
  if (!refusal) return;
  if (refusal->to.at == from) return nodes_.node_at(from.node)->deliver(std::move(*refusal));
  send(from, std::move(*refusal));
}

void simulated_transport::slow_down(node_index node, double factor) {
  TROUPE_ASSERT(factor > 0);
  links_[node].factor = factor;
}

void simulated_transport::lose_transfers(node_index node) {
  if (!transfers_) return;
  for (const auto& message : transfers_->give_up(node))
    outcomes_.count(message_outcome::lost, message);
}

void simulated_transport::lose_held(node_index one, node_index other) {
  std::erase_if(held_, [&](const in_flight_message& message) {
    auto ends = std::pair{message.from.node, message.to()};
    auto is_between = ends == std::pair{one, other} || ends == std::pair{other, one};
    if (is_between) outcomes_.count(message_outcome::lost, message);
    return is_between;
  });
}

void simulated_transport::release_held() {
  for (auto& message : std::exchange(held_, {})) {
    if (!nodes_.is_alive(message.from))
      outcomes_.count(message_outcome::lost, message);
    else if (message.is_out)
      arrive(std::move(message)); // back here if it is still blocked
    else
      set_out(std::move(message));
  }
}

} // namespace troupe
