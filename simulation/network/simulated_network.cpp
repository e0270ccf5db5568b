// SPDX-License-Identifier: Apache-2.0
// The way of a message from node to node.
#include "simulation/network/simulated_network.hpp"

#include "actors/interfaces/interfaces.hpp"
#include "actors/interfaces/message_kind.hpp"
#include "actors/net/parcel_codec.hpp"
#include "kernels/tensor/random.hpp"
#include "messages/errors/assert.hpp"
#include "messages/message_storage.hpp"
#include "simulation/network/end_of_time.hpp"

#include <caf/actor_system.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace troupe {

namespace {

constexpr std::string_view gradient_kind = "PushGradient";
constexpr std::string_view snapshot_kind = "VariableSnapshot";
constexpr std::string_view cancel_kind = "CancelStep";

// Only messages that replicas ask for again may be lost: their questions, and the answers.
constexpr std::array<std::string_view, 7> repeatable{
  "ReadVariable", "ChangeVariable", snapshot_kind, gradient_kind,
  "PushReply",    "TakeToken",      "Token"};

const char* kind_of(const parcel& parcel) {
  if (parcel.kind == parcel::content_kind::down) return "down";
  if (parcel.kind != parcel::content_kind::message) return "find";
  if (parcel.content.empty()) return "empty";
  auto [number, type] = parcel.content.type(0);
  const auto* kind = find_message_kind(number, type);
  return kind == nullptr ? "unknown" : kind->name;
}

// The number at the end of a name; 0 if there is none.
uint32_t trailing_number(std::string_view name) {
  auto begin = name.find_last_not_of("0123456789");
  auto digits = name.substr(begin == std::string_view::npos ? 0 : begin + 1);
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

// A gradient's replica, and its number among that replica's; nothing if it is no gradient.
std::optional<std::pair<uint32_t, uint64_t>> gradient_of(const parcel& parcel) {
  if (!parcel.content.match_elements<msg<wire::PushGradient>>()) return std::nullopt;
  auto origin = parcel.content.get_as<msg<wire::PushGradient>>(0).reader().getOrigin();
  return std::pair{origin.getReplica(), origin.getIteration()};
}

bool is_recalled(const parcel& parcel) {
  if (!parcel.content.match_elements<msg<wire::PushGradient>>()) return false;
  const auto& storage = parcel.content.get_as<msg<wire::PushGradient>>(0).owner();
  return storage && storage->recalled;
}

uint64_t link_of(node_index from, node_index to) {
  return uint64_t{from} << 32 | to;
}

} // namespace

std::span<const std::string_view> repeatable_messages() {
  return repeatable;
}

simulated_network::simulated_network(world& world, uint32_t replicas, network_options options)
  : world_(world), options_(std::move(options)), replicas_(replicas),
    places_(1 + options_.owners + replicas), origin_(world.system().clock().now() - world.now()),
    silence_(options_.silence_timeout), alarm_(world.system(), [this] { ring(); }) {
  TROUPE_ASSERT(options_.owners > 0);
  if (options_.bytes_per_second > 0) cards_.emplace(options_.bytes_per_second);
  for (node_index node = 0; node < node_count(); ++node)
    begin_life(node);
}

void simulated_network::begin_life(node_index node) {
  auto& place = places_[node];
  place.here = node::make(world_.system(), *this, {node, place.incarnation}, name_of(node));
}

std::string simulated_network::name_of(node_index node) const {
  if (node == chief_node()) return "chief";
  if (!is_replica(node)) return fmt::format("ps {}", node - 1);
  return fmt::format("replica {}", node - replica_node(0));
}

node_index simulated_network::node_of(const std::string& actor) const {
  for (auto prefix : {"replica ", "communicator ", "task reporter "})
    if (actor.starts_with(prefix)) return replica_node(trailing_number(actor));
  if (actor.starts_with("owner ") || actor.starts_with("accumulator "))
    return owner_node(trailing_number(actor) % options_.owners);
  if (actor.starts_with("mirror "))
    return owner_node((trailing_number(actor) + 1) % options_.owners);
  return chief_node();
}

// ---- time ----

job_time simulated_network::now() const {
  return alarm_.now() - origin_;
}

void simulated_network::at(job_time time, std::function<void()> action) {
  events_.push_back({std::max(time, now()), event_count_++, std::move(action)});
  std::push_heap(events_.begin(), events_.end());
  plan_alarm();
}

void simulated_network::plan_alarm() {
  if (events_.empty() || (alarm_set_for_ && *alarm_set_for_ <= events_.front().time)) return;
  alarm_set_for_ = events_.front().time;
  alarm_.set(origin_ + *alarm_set_for_);
}

void simulated_network::ring() {
  auto time = now();
  while (!events_.empty() && events_.front().time <= time) {
    std::pop_heap(events_.begin(), events_.end());
    auto action = std::move(events_.back().action);
    events_.pop_back();
    action();
  }
  if (alarm_set_for_ && *alarm_set_for_ <= time) alarm_set_for_.reset();
  plan_alarm();
}

// ---- where actors stand ----

void simulated_network::place(const std::string& name, const caf::strong_actor_ptr& actor) {
  stand_beside(name, actor);
  if (!name.starts_with("replica ")) goes_by_[name] = actor; // a replica is never looked for
  if (name == "roll call" && on_roll_call) on_roll_call();
}

std::map<uint32_t, std::string> simulated_network::others() const {
  std::map<uint32_t, std::string> names;
  for (node_index node = 1; options_.meets_at_roll_call && node < node_count(); ++node)
    if (!is_gone_for_good(node)) names.emplace(node, name_of(node));
  return names;
}

expected<bool> simulated_network::enter(const std::string& name, double /*load*/) {
  return !name.starts_with("replica ") || (!options_.meets_at_roll_call && is_up(node_of(name)));
}

// The chief's process may still be starting the job.
void simulated_network::bring_back(uint32_t replica) {
  constexpr auto look_period = std::chrono::milliseconds{1};
  if (come_back_) return come_back_(replica);
  auto node = replica_node(replica);
  at(now() + look_period, [this, replica, life = node_address{node, places_[node].incarnation}] {
    if (is_alive(life)) bring_back(replica);
  });
}

void simulated_network::bring_back_owners(node_index node) {
  if (owners_come_back_) owners_come_back_(node);
}

void simulated_network::stand_beside(const std::string& neighbour,
                                     const caf::strong_actor_ptr& actor) {
  auto node = node_of(neighbour);
  stands_at_[actor->id()] = node;
  places_[node].actors.push_back(actor);
}

expected<caf::strong_actor_ptr> simulated_network::see(const std::string& viewer,
                                                       const std::string& name) {
  auto found = goes_by_.find(name);
  if (found == goes_by_.end())
    return fail(errc::not_found, fmt::format("no node was placed as '{}'", name));
  const auto& actor = found->second;
  auto known = stands_at_.find(actor->id());
  if (known == stands_at_.end()) return actor; // gone with its node: it answers no more
  auto from = node_of(viewer);
  auto at = known->second;
  if (from == at || !is_up(from) || !is_up(at)) return actor;
  places_[at].known_to.insert(from);
  return places_[from].here->handle_of(
    places_[at].here->show(actor, places_[from].here->address()));
}

expected<actor_search> simulated_network::search(const std::string& viewer,
                                                 const std::string& name) {
  return see(viewer, name).map([&](const caf::strong_actor_ptr&) {
    return actor_search{
      [this, viewer, name](const std::function<void(const caf::strong_actor_ptr&)>& found) {
        if (auto actor = see(viewer, name)) found(*actor);
        return true;
      }};
  });
}

bool simulated_network::is_alive(const node_address& address) const {
  const auto& place = places_[address.node];
  return place.here != nullptr && place.incarnation == address.incarnation;
}

// ---- the way of a message ----

void simulated_network::send(const node_address& from, parcel parcel) {
  if (!is_alive(from)) return;
  auto own_bytes = check_travels(parcel, options_.messages.get());
  if (!own_bytes) return refuse(from, parcel, own_bytes.error());
  places_[from.node].known_to.insert(parcel.to.at.node);
  places_[parcel.to.at.node].known_to.insert(from.node);
  const auto* kind = kind_of(parcel);
  set_out({from, std::move(parcel), kind, now(), *own_bytes});
}

void simulated_network::set_out(in_flight_message message) {
  if (places_[message.from.node].frozen > 0) return held_.push_back(std::move(message));
  if (is_recalled(message.parcel)) return recall(message);
  message.is_out = true;
  if (const auto* probabilities = faults_of(message))
    return set_out_with_faults(std::move(message), *probabilities);
  leave(std::move(message));
}

const fault_probabilities* simulated_network::faults_of(const in_flight_message& message) const {
  if (injections_.empty() || std::ranges::count(repeatable, message.kind) == 0) return nullptr;
  if (!is_replica(end_of(message))) return nullptr; // parameter servers do not ask each other again
  const fault_injection* chosen = nullptr;
  for (const auto& [number, injection] : injections_) {
    const auto& nodes = injection.nodes;
    auto is_of_nodes = nodes.empty() || nodes.contains(message.from.node)
                       || nodes.contains(message.parcel.to.at.node);
    auto is_of_kind = injection.kind == message.kind;
    if (!is_of_nodes || !(is_of_kind || injection.kind.empty())) continue;
    if (chosen == nullptr || is_of_kind || chosen->kind.empty()) chosen = &injection;
  }
  return chosen == nullptr ? nullptr : &chosen->probabilities;
}

void simulated_network::set_out_with_faults(in_flight_message message,
                                            const fault_probabilities& probabilities) {
  auto end = end_of(message);
  random_stream stream{
    random_key{options_.seed, "luck", replica_at(end), places_[end].fault_draws++}};
  if (stream.uniform() < probabilities.lost) return lose(message, outcome::lost);
  if (stream.uniform() < probabilities.duplicated) {
    count(outcome::duplicated, message.kind);
    leave(message);
  }
  if (stream.uniform() < probabilities.reordered) {
    count(outcome::reordered, message.kind);
    message.late = probabilities.late;
  }
  leave(std::move(message));
}

void simulated_network::leave(in_flight_message message) {
  auto bytes = cards_ ? bytes_of(message) : 0;
  if (bytes > 0) return transfer(std::move(message), bytes);
  travel(std::move(message));
}

// A message that is late on purpose keeps no order.
void simulated_network::travel(in_flight_message message) {
  auto time = later(now(), message.late);
  if (options_.latency) {
    auto latency = options_.latency(passage_of(message));
    time = later(time, scaled(latency, factor_of(message)));
  }
  if (message.late == job_time{0} && bytes_of(message) == 0) {
    auto& last = last_arrival_[link_of(message.from.node, message.parcel.to.at.node)];
    time = last = std::max(last, time);
  }
  if (time <= now()) return arrive(std::move(message));
  at(time, [this, message = std::move(message)]() mutable { arrive(std::move(message)); });
}

// The replica's node, if there is one at an end.
node_index simulated_network::end_of(const in_flight_message& message) const {
  return is_replica(message.from.node) ? message.from.node : message.parcel.to.at.node;
}

uint32_t simulated_network::replica_at(node_index end) const {
  return is_replica(end) ? end - replica_node(0) : replicas_;
}

passage simulated_network::passage_of(const in_flight_message& message) {
  auto end = end_of(message);
  return {replica_at(end), message.kind, places_[end].messages++};
}

double simulated_network::factor_of(const in_flight_message& message) const {
  return std::max(places_[message.from.node].factor, places_[message.parcel.to.at.node].factor);
}

uint64_t simulated_network::bytes_of(const in_flight_message& message) const {
  if (message.kind == gradient_kind) return options_.gradient_bytes / options_.owners;
  if (message.kind == snapshot_kind) return options_.model_bytes / options_.owners;
  return message.own_bytes;
}

void simulated_network::transfer(in_flight_message message, uint64_t bytes) {
  auto number = cards_->begin(message.from.node, message.parcel.to.at.node,
                              static_cast<double>(bytes), 1 / factor_of(message), now());
  transfers_.emplace(number, std::move(message));
  plan_transfer_look(now());
}

// Not before everything that begins at the same moment has begun.
void simulated_network::plan_transfer_look(job_time time) {
  if (transfer_look_ && *transfer_look_ <= time) return;
  transfer_look_ = time;
  at(time, [this] { look_at_transfers(); });
}

void simulated_network::look_at_transfers() {
  if (transfer_look_ && *transfer_look_ <= now()) transfer_look_.reset();
  for (auto number : cards_->finish(now()))
    travel(take_transfer(number));
  if (auto next = cards_->next_end(now())) plan_transfer_look(*next);
}

// A node that was told to cancel may have recalled what it had on its way, if in time.
void simulated_network::look_at_recalled(node_index from) {
  for (auto number : cards_->sent_by(from)) {
    if (!is_recalled(transfers_.at(number).parcel)) continue;
    cards_->give_up_one(number, now());
    recall(take_transfer(number));
  }
  plan_transfer_look(now());
}

simulated_network::in_flight_message simulated_network::take_transfer(uint64_t number) {
  return std::move(transfers_.extract(number).mapped());
}

// As a link does: the request is answered at home.
void simulated_network::recall(const in_flight_message& message) {
  count(outcome::recalled, message.kind);
  refuse(message.from, message.parcel, {errc::cancelled, "the message was recalled"});
}

void simulated_network::refuse(const node_address& from, const parcel& parcel,
                               const error& reason) {
  auto refusal = refusal_of(parcel, reason);
  if (!refusal) return;
  if (refusal->to.at == from) return places_[from.node].here->deliver(std::move(*refusal));
  send(from, std::move(*refusal));
}

void simulated_network::arrive(in_flight_message message) {
  auto to = message.parcel.to.at;
  if (!is_alive(to)) return lose(message, outcome::too_late);
  if (is_blocked(message.from.node, to.node)) {
    count(outcome::held, message.kind);
    return held_.push_back(std::move(message));
  }
  auto& place = places_[to.node];
  if (!options_.service || message.is_served || message.kind != gradient_kind)
    return hand_over(std::move(message));
  message.is_served = true;
  place.busy_until
    = later(std::max(place.busy_until, now()), options_.service(to.node - 1, place.served++));
  at(place.busy_until,
     [this, message = std::move(message)]() mutable { arrive(std::move(message)); });
}

void simulated_network::lose(const in_flight_message& message, outcome result) {
  count(result, message.kind);
  if (auto gradient = gradient_of(message.parcel)) lost_gradients_.insert(*gradient);
}

void simulated_network::hand_over(in_flight_message message) {
  count(outcome::delivered, message.kind);
  if (!lost_gradients_.empty())
    if (auto gradient = gradient_of(message.parcel)) lost_gradients_.erase(*gradient);
  auto node = message.parcel.to.at.node;
  auto here = places_[node].here;
  if (cards_ && message.kind == cancel_kind)
    at(now() + job_time{1}, [this, node] { look_at_recalled(node); });
  if (on_delivery)
    on_delivery({now(), message.sent, message.from.node, node, replica_at(end_of(message)),
                 message.kind, &message.parcel.content});
  here->deliver(std::move(message.parcel));
}

} // namespace troupe
