// SPDX-License-Identifier: Apache-2.0
// The network of a virtual world: messages between nodes take time, and may go wrong.
#pragma once

#include "actors/net/node.hpp"
#include "actors/net/placement.hpp"
#include "actors/net/transport.hpp"
#include "actors/world/clock_error.hpp"
#include "actors/world/world.hpp"
#include "simulation/network/clock_alarm.hpp"
#include "simulation/network/fair_share.hpp"
#include "simulation/network/network_options.hpp"
#include "simulation/network/silence_watch.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// A message that has come to a node, for observers.
struct delivery {
  job_time time{0};
  job_time sent{0}; ///< When it set out.
  node_index from = 0;
  node_index to = 0;
  uint32_t replica = 0; ///< The one at one of its ends; else the number of replicas.
  const char* kind = "";
  const caf::message* content = nullptr;
};

/// How often a message suffers a fault. Unit: probabilities from 0 to 1.
struct fault_probabilities {
  double lost = 0;
  double duplicated = 0;
  double reordered = 0;
  /// By which a reordered message comes later than its bytes and its latency make it.
  job_time late{std::chrono::milliseconds{1}};
};

/// The messages that suffer faults, and how often.
struct fault_injection {
  std::string kind;           ///< Empty = every kind.
  std::set<node_index> nodes; ///< They send or get the messages; empty = any.
  fault_probabilities probabilities;
};

/// The kinds of messages that may suffer faults: those that replicas ask for, and ask again.
[[nodiscard]] std::span<const std::string_view> repeatable_messages();

/// A cut between nodes: what crosses it waits until it is healed, as a connection sends again what
/// was not acknowledged. Both predicates are asked; an empty one is true for every node.
struct cut {
  std::function<bool(node_index)> from;
  std::function<bool(node_index)> to;
};

/// A simulated network, and the nodes at it.
///
/// Messages between two nodes keep their order, but bulk ones (gradients, variables) and the others
/// pass each other: a token never queues behind 100 MB. Events of one moment happen in the order
/// in which they were decided. Draws are those of the ends and their count of messages, so runs
/// that differ in one option are compared on the same draws.
///
/// As over sockets, a node that is silent for longer than `network_options::silence_timeout` is
/// given up by those that talk to it, for good: what was held back between them is lost, and it
/// hears of that as soon as it hears anything. And a gradient that is recalled while its bytes are
/// on their way gives its share of the cards back, and is answered by `cancelled` at home.
///
/// Thread: that of the virtual world. Must not outlive the world, and must outlive the job.
class simulated_network final : public transport, public placement {
public:
  simulated_network(world& world, uint32_t replicas, network_options options);
  ~simulated_network() override;

  // ---- nodes ----

  [[nodiscard]] node_index chief_node() const { return 0; }

  [[nodiscard]] node_index owner_node(uint32_t owner) const { return 1 + owner; }

  [[nodiscard]] node_index replica_node(uint32_t replica) const {
    return 1 + options_.owners + replica;
  }

  [[nodiscard]] uint32_t owner_count() const { return options_.owners; }

  [[nodiscard]] node_index node_count() const { return static_cast<node_index>(places_.size()); }

  [[nodiscard]] job_time silence_timeout() const { return options_.silence_timeout; }

  /// "replica 3", "ps 0", "chief".
  [[nodiscard]] std::string name_of(node_index node) const;

  /// The node where the actor of that name stands: variables are dealt out to their nodes by the
  /// number at the end of their names.
  [[nodiscard]] node_index node_of(const std::string& actor) const;

  [[nodiscard]] bool is_up(node_index node) const { return places_[node].here != nullptr; }

  [[nodiscard]] bool is_gone_for_good(node_index node) const { return places_[node].is_gone; }

  [[nodiscard]] bool is_replica(node_index node) const { return node > options_.owners; }

  /// Whether messages pass between them now, in both directions.
  [[nodiscard]] bool are_connected(node_index one, node_index other) const {
    return !is_blocked(one, other) && !is_blocked(other, one);
  }

  // ---- faults ----

  /// The node ends with all its actors. The others know it after the detection time.
  /// @param for_good Whether it never restarts.
  void crash(node_index node, bool for_good = false);

  /// Every node begins a new life without actors, but for replicas' nodes that are down: whatever
  /// was on its way is gone.
  void reset();

  /// It begins a new life, without actors. Where there is a roll call, `on_restart` is called to
  /// start its process; else its replica, or what it held, is back at once.
  void restart(node_index node);

  /// Tells the function given to `on_return`, once there is one, that the replica is to be
  /// spawned.
  void bring_back(uint32_t replica);

  /// Nothing enters or leaves the node any more, until it thaws: then everything does.
  void freeze(node_index node);
  void thaw(node_index node);

  /// Its clock goes ahead by so much, and from now on runs so many times as fast as it should. Its
  /// actors' timers go by this clock.
  void set_clock(node_index node, job_time ahead, double rate);

  /// As it is now.
  [[nodiscard]] const clock_error& clock_of(node_index node) const { return places_[node].clock; }

  /// @returns The cut's number, for `heal`.
  uint64_t sever(cut between);
  void heal(uint64_t number);

  /// Multiplies the time that a message takes at this node's link; 1 = as it was.
  void slow_down(node_index node, double factor);

  /// Tells the function given to `on_owners_return`, if there is one, that what a parameter server
  /// held is to be spawned.
  void bring_back_owners(node_index node);

  /// Whether there is such a function.
  [[nodiscard]] bool takes_owners_back() const { return owners_come_back_ != nullptr; }

  /// Injects from now on. Among several injections for a message, one of its own kind comes first,
  /// and among these the last. @returns The injection's number, for `end_injection`.
  uint64_t begin_injection(fault_injection injection);
  void end_injection(uint64_t number);

  // ---- time ----

  /// Does something at a time of the world, before actors do.
  void at(job_time time, std::function<void()> action);

  /// The world's time, also where the clock calls.
  [[nodiscard]] job_time now() const;

  // ---- observers ----

  std::function<void(const delivery&)> on_delivery; ///< Before the receiver has it. May be empty.

  /// Where there is a roll call: told when it is there, and when a node has begun a new life.
  std::function<void()> on_roll_call;
  std::function<void(node_index)> on_restart;

  /// Told when a node has given up another that was silent. May be empty.
  std::function<void(node_index by, node_index lost)> on_give_up;

  /// Messages of each kind by their outcome: "delivered Token", "lost PushGradient", "held Token".
  [[nodiscard]] std::map<std::string, uint64_t> counts() const;

  /// Gradients that were sent and lost to the last trace: no repetition of them has arrived.
  [[nodiscard]] uint64_t lost_gradients() const { return lost_gradients_.size(); }

  // ---- transport and placement ----

  void send(const node_address& from, parcel parcel) override;

  [[nodiscard]] uint32_t owner_places() const override { return options_.owners; }

  /// Where there is a roll call: the nodes that are waited for at it, which are all that are there
  /// or will be.
  [[nodiscard]] std::map<uint32_t, std::string> others() const override;

  /// Replicas whose nodes are up enter where there is no roll call; others are spawned later.
  [[nodiscard]] expected<bool> enter(const std::string& name, double load) override;

  [[nodiscard]] uint32_t where(const std::string& name) const override { return node_of(name); }

  /// The node that is lost ends with all its actors.
  void part_with(uint32_t lost, uint32_t lost_by) override;

  void place(const std::string& name, const caf::strong_actor_ptr& actor) override;
  void stand_beside(const std::string& neighbour, const caf::strong_actor_ptr& actor) override;
  [[nodiscard]] expected<caf::strong_actor_ptr> see(const std::string& viewer,
                                                    const std::string& name) override;
  [[nodiscard]] expected<actor_search> search(const std::string& viewer,
                                              const std::string& name) override;

  void on_return(std::function<void(uint32_t replica)> come_back) override {
    come_back_ = std::move(come_back);
  }

  void on_owners_return(std::function<void(uint32_t process)> come_back) override {
    owners_come_back_ = std::move(come_back);
  }

private:
  /// A parcel on its way.
  struct in_flight_message {
    node_address from;
    troupe::parcel parcel;
    const char* kind = "";
    job_time sent{0};
    uint64_t own_bytes = 0; ///< Bytes of a bulk message of another schema.
    job_time late{0};       ///< By which a fault makes it come later.
    bool is_out = false;    ///< It has left its node.
    bool is_served = false; ///< The receiving node has been busy with it.
  };

  /// Where a node is, or was.
  struct place_state {
    std::shared_ptr<node> here; ///< Null while it is down.
    uint32_t incarnation = 0;
    uint32_t frozen = 0; ///< How often it was frozen and not thawed yet.
    double factor = 1;
    clock_error clock;
    bool is_gone = false;     ///< It never restarts.
    uint64_t messages = 0;    ///< That draws of latencies are numbered by.
    uint64_t fault_draws = 0; ///< For messages that might suffer a fault.
    uint64_t served = 0;
    job_time busy_until{0};
    std::vector<caf::strong_actor_ptr> actors;
    std::set<node_index> known_to; ///< Nodes that have something to lose when it is gone.
  };

  struct event {
    job_time time{0};
    uint64_t number = 0;
    std::function<void()> action;

    bool operator<(const event& other) const { // the earliest is the top of a heap
      return time != other.time ? time > other.time : number > other.number;
    }
  };

  /// A node that has given up another, which has not heard of it yet.
  struct parting {
    node_address by;
    node_address lost;
  };

  enum class outcome : uint8_t {
    delivered,
    lost,
    duplicated,
    reordered,
    held,
    too_late,
    recalled,
    given_up
  };

  void begin_life(node_index node);
  void ring();
  [[nodiscard]] in_flight_message take_transfer(uint64_t number);
  void look_at_transfers();
  void plan_transfer_look(job_time time);
  void plan_alarm();
  void set_out(in_flight_message message);
  void set_out_with_faults(in_flight_message message, const fault_probabilities& probabilities);
  void leave(in_flight_message message);
  void travel(in_flight_message message);
  void transfer(in_flight_message message, uint64_t bytes);
  void arrive(in_flight_message message);
  void hand_over(in_flight_message message);
  void release_held();
  void look_at_recalled(node_index from);
  void recall(const in_flight_message& message);
  void refuse(const node_address& from, const parcel& parcel, const error& reason);
  [[nodiscard]] bool is_cut(node_index from, node_index to) const;
  void look_at_link(node_index from, node_index to);
  void look_at_links_of(node_index node);
  void look_at_all_links();
  void give_up_silent();
  void give_up_on(node_index by, node_index lost);
  void tell_given_up();
  [[nodiscard]] bool is_blocked(node_index from, node_index to) const;
  [[nodiscard]] bool is_alive(const node_address& address) const;
  [[nodiscard]] node_index end_of(const in_flight_message& message) const;
  [[nodiscard]] uint32_t replica_at(node_index end) const;
  [[nodiscard]] passage passage_of(const in_flight_message& message);
  [[nodiscard]] double factor_of(const in_flight_message& message) const;
  [[nodiscard]] const fault_probabilities* faults_of(const in_flight_message& message) const;
  [[nodiscard]] uint64_t bytes_of(const in_flight_message& message) const;

  void count(outcome result, const char* kind) { ++counts_[{result, kind}]; }

  void lose(const in_flight_message& message, outcome result);

  world& world_;
  network_options options_;
  uint32_t replicas_;
  std::vector<place_state> places_;
  std::unordered_map<uint64_t, node_index> stands_at_;             ///< By CAF id.
  std::unordered_map<std::string, caf::strong_actor_ptr> goes_by_; ///< By name, but for replicas.
  std::function<void(uint32_t)> come_back_;
  std::function<void(uint32_t)> owners_come_back_;
  caf::actor_clock::time_point origin_; ///< The clock's time at the world's time 0.

  std::vector<event> events_; ///< A heap.
  uint64_t event_count_ = 0;
  std::optional<job_time> alarm_set_for_;
  std::unordered_map<uint64_t, job_time> last_arrival_; ///< By link, of what is not bulk.
  std::optional<fair_share> cards_;
  std::unordered_map<uint64_t, in_flight_message> transfers_; ///< By their numbers in `cards_`.
  std::optional<job_time> transfer_look_;                     ///< When an event looks at them next.

  std::map<uint64_t, cut> cuts_;
  uint64_t cut_count_ = 0;
  std::vector<in_flight_message> held_;
  silence_watch silence_;
  std::vector<parting> partings_;
  bool has_wrong_clocks_ = false;
  std::map<uint64_t, fault_injection> injections_;
  uint64_t injection_count_ = 0;
  std::map<std::pair<outcome, const char*>, uint64_t> counts_;
  std::set<std::pair<uint32_t, uint64_t>> lost_gradients_; ///< By replica and iteration.
  clock_alarm alarm_; ///< Last: nothing rings while the rest is taken apart.
};

} // namespace troupe
