// SPDX-License-Identifier: Apache-2.0
// A node: the actors that it shows to others, and its proxies of theirs.
#pragma once

#include "actors/net/array_places.hpp"
#include "actors/net/parcel.hpp"
#include "actors/net/transport.hpp"
#include "messages/errors/errc.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/mailbox_element.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

namespace caf {
class actor_system;
class execution_unit;
} // namespace caf

namespace troupe {

/// An actor may be anywhere, and handles must work as if it were here. A node keeps what that
/// takes: for each actor of another node that is known here a proxy, for each of its own actors the
/// nodes that know it, and for each open request the node that is to answer, so that none waits for
/// a node that is gone.
///
/// A node is an object, not a process: a simulation has thousands in one actor system.
/// Thread: any.
class node : public std::enable_shared_from_this<node> {
public:
  /// @param system Outlives the node's actors. @param carrier Outlives the node, or disconnects it.
  [[nodiscard]] static std::shared_ptr<node> make(caf::actor_system& system, transport& carrier,
                                                  node_address address, std::string name);

  node(const node&) = delete;
  node& operator=(const node&) = delete;

  [[nodiscard]] const node_address& address() const { return address_; }

  [[nodiscard]] const std::string& name() const { return name_; }

  /// The memory where arrays for actors of this node are to lie.
  [[nodiscard]] const std::shared_ptr<array_places>& arrays() const { return arrays_; }

  /// Shows an actor of this node to another node, which is told when the actor has ended.
  /// @returns What the other node needs for `handle_of`; actor 0 for null.
  [[nodiscard]] actor_address show(const caf::strong_actor_ptr& actor, const node_address& to);

  /// The handle by which actors of this node know an actor: the actor itself if it is of this node,
  /// else the one proxy of it, which has ended if its node is lost. Null for actor 0, and for an
  /// actor of this node that has ended.
  [[nodiscard]] caf::strong_actor_ptr handle_of(const actor_address& actor);

  /// Lets others find an actor of this node by its name, until it ends. Nodes that asked before are
  /// answered now; an actor that had the name before has it no more.
  void publish(const std::string& name, const caf::strong_actor_ptr& actor);

  /// Takes the actor that was looked for. Errors: unavailable, if its node is gone.
  using found_callback = std::function<void(expected<caf::strong_actor_ptr>)>;

  /// Looks for the actor that `peer` has published, or will publish, by this name.
  /// @param then Called once, on some thread, perhaps before this returns.
  void find(const node_address& peer, const std::string& name, found_callback then);

  /// Hands a parcel that has come to its receiver; drops what was for another life of this node, or
  /// is from a lost one.
  /// @param host Has the receiver if it is to be resumed; null: the scheduler has it.
  void deliver(parcel message, caf::execution_unit* host = nullptr);

  /// A peer is gone for good: ends its proxies, which tells monitors and links, and answers
  /// requests and questions that wait for it. Parcels of it that come later are dropped.
  void lose(const node_address& peer, const error& reason);

  /// Sends a proxy's message to the actor that the proxy stands for.
  void send(const actor_address& to, caf::mailbox_element& element);

  /// Cuts the node off: when this returns, nothing is given to its carrier any more. Not to be
  /// called from inside the carrier's `send`.
  void disconnect();

  /// Requests that wait for an answer from other nodes.
  [[nodiscard]] size_t pending_requests() const;

private:
  /// A request that an actor of this node has made: the actor's id, and the request's number.
  using request_key = std::pair<uint64_t, uint64_t>;

  struct pending_request {
    caf::strong_actor_ptr asker;
    uint64_t id = 0; ///< As in `parcel`.
    node_address asked;
  };

  /// A question of this node: the node that it went to, and what is done with the answer.
  struct open_question {
    node_address asked;
    found_callback then;
  };

  /// A question of another node that waits for an answer.
  struct asked_question {
    node_address asker;
    uint64_t number = 0;
    std::shared_ptr<const void> charge; ///< As in `parcel`: the name is kept as long.
  };

  /// An actor of this node that others have heard of.
  struct shown_actor {
    caf::strong_actor_ptr actor;
    std::set<node_address> known_to;
  };

  /// A node that is gone, or was gone before its present life.
  struct lost_node {
    uint32_t lives = 0; ///< Incarnations below this number are over.
    error reason;       ///< Why the last of them ended.
  };

  node(caf::actor_system& system, transport& carrier, node_address address, std::string name)
    : system_(system), carrier_(&carrier), address_(address), name_(std::move(name)) {}

  void carry(parcel message);
  [[nodiscard]] bool is_lost(const node_address& peer) const;
  [[nodiscard]] caf::strong_actor_ptr make_proxy(const actor_address& of);
  void deliver_message(parcel message, caf::execution_unit* host);
  void refuse(const parcel& request);
  void on_find(const parcel& question);
  void finish_find(const parcel& answer, const caf::strong_actor_ptr& with);
  void answer(const asked_question& question, const caf::strong_actor_ptr& with);
  void withdraw(const std::string& name, uint64_t actor);
  void on_end(uint64_t actor, const caf::error& reason);
  void end_proxy(const actor_address& of, caf::error reason);
  void say_if_ended(const caf::strong_actor_ptr& actor, const node_address& to);

  // With the lock held:
  [[nodiscard]] bool is_over(const node_address& peer) const;
  [[nodiscard]] bool enlist(const caf::strong_actor_ptr& actor, const node_address& known_to);
  [[nodiscard]] caf::strong_actor_ptr known(const actor_address& actor);
  void watch(const caf::strong_actor_ptr& actor); ///< Without the lock: it may have ended.

  caf::actor_system& system_;
  std::atomic<transport*> carrier_;    ///< Null: cut off.
  std::atomic<uint32_t> carrying_ = 0; ///< Parcels that the carrier is being given.
  node_address address_;
  std::string name_;
  std::shared_ptr<array_places> arrays_ = std::make_shared<array_places>();

  mutable std::mutex mutex_; ///< Guards all below; never held while foreign code runs.
  std::unordered_map<uint64_t, shown_actor> shown_;
  std::map<actor_address, caf::strong_actor_ptr> proxies_;
  std::map<request_key, pending_request> pending_;
  std::map<std::string, caf::strong_actor_ptr> published_;
  std::multimap<std::string, asked_question> asked_;    ///< For names that no actor goes by yet.
  std::unordered_map<uint64_t, open_question> finding_; ///< By the question's number.
  uint64_t question_count_ = 0;
  std::map<node_index, lost_node> lost_;
};

} // namespace troupe
