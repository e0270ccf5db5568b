// SPDX-License-Identifier: Apache-2.0
// The network of the real world: one node of a job, and its links to the others.
#pragma once

#include "actors/net/membership.hpp"
#include "actors/net/node.hpp"
#include "actors/net/silence_timeout.hpp"
#include "actors/net/sockets/byte_stream.hpp"
#include "actors/net/transport.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

class network_messages;

/// The window for each peer, by default: a quarter of this machine's memory, at most 4 GiB.
[[nodiscard]] uint64_t usual_window_bytes();

/// How a node talks to the others of its job.
struct socket_network_options {
  /// Where a node is.
  struct place {
    std::string name;    ///< "worker:2".
    std::string address; ///< "10.0.0.3:2222"; empty if no node dials it.
  };

  std::string job;           ///< The same for all nodes of one job, and for no other node.
  std::vector<place> nodes;  ///< In the same order everywhere.
  node_index self = 0;       ///< Which of them this is.
  std::string listen_host{}; ///< Network card to listen on; empty: our address's host.

  /// Addresses of this machine's network cards: dialed, too, for a name that leads to loopback.
  std::vector<std::string> own_addresses{};

  /// Whether two nodes ever have something to say to each other; empty: all do. The one with the
  /// higher index dials.
  std::function<bool(node_index, node_index)> talk{};

  /// Messages of other schemas than Troupe's that travel, too; the same for all nodes.
  std::shared_ptr<const network_messages> messages{};

  std::optional<tls_files> tls{};
  bool insecure_network = false; ///< Whether to listen beyond this machine without TLS.

  /// Whether nodes of one machine, one network namespace and one user meet at a local socket
  /// (unix(7)) where there is no TLS, and speak through memory: at two to four times the speed of
  /// TCP, see docs/protocol.md.
  bool local_sockets = true;

  /// A peer that says nothing for so long is gone; it says something ten times as often.
  std::chrono::milliseconds silence_timeout{default_silence_timeout};

  /// A peer that was heard of so recently is alive: a process that comes with its index is another,
  /// and is refused.
  std::chrono::milliseconds alive_for{1000};

  /// Bytes of messages that are taken from a peer before its actors' addressees have let go of
  /// some, and that wait for a peer before it counts as gone: for either, tokens and gradients
  /// each. More than what all replicas of a node push in a step. Each message counts as its bytes
  /// and `message_overhead_bytes`.
  uint64_t window_bytes = usual_window_bytes();

  uint64_t message_bytes_max = uint64_t{16} << 30; ///< Longer messages are refused.
  uint64_t part_bytes_max = uint64_t{1} << 20; ///< Longer messages are cut; others go in between.

  /// How long the thread that reads looks for messages before it sleeps, which costs processor time
  /// and saves the time of waking; 0: not at all; without: `usual_spin`.
  std::optional<std::chrono::microseconds> spin{};

  /// Told what is wrong but can go on, in one line; empty: the lines go to standard error, as what
  /// it throws does. Thread: one of its own, which may have to wait.
  std::function<void(const std::string&)> on_warning{};
};

/// A node's place among the nodes of its job. It listens, dials those with a lower index until they
/// are there, and again when they are gone; brings parcels, and tells the node of losses. A process
/// that comes is asked for its hello, and refused if it is of another job, not in the list, there
/// already, or says nothing for 5 s. At most 64 connections, or as many as the job has nodes, are
/// without a hello or tell their peers why they must go; the oldest of more are closed at once.
///
/// Memory: what a peer makes this node keep is at most twice the window and one message in either
/// direction.
/// Thread: any; it has two of its own, on which actors that a message wakes may run, too. Outlives
/// the actors that speak through it.
class socket_network final : public transport, public membership {
public:
  /// Takes the node's address and begins to dial.
  /// Errors: invalid_argument if the options contradict each other, the address is none, or is
  /// beyond this machine and there is neither TLS nor leave; unavailable if another process listens
  /// there already, or the address is not this machine's; as `load_tls_identity`.
  [[nodiscard]] static expected<std::unique_ptr<socket_network>>
  open(caf::actor_system& system, socket_network_options options);

  /// Leaves. Thread: not an actor's.
  ~socket_network() override;

  [[nodiscard]] const std::shared_ptr<node>& here() const override;

  [[nodiscard]] std::string name_of(node_index peer) const override;

  /// As the base says; of a node that is gone, the address of its next life.
  /// Errors: failed_precondition if it refuses us for good; cancelled if we leave.
  [[nodiscard]] std::shared_future<expected<node_address>> arrival(node_index peer) override;

  [[nodiscard]] std::function<std::shared_future<expected<node_address>>()>
  arrivals(node_index peer) override;

  void give_up(node_index peer, const std::string& why) override;

  [[nodiscard]] std::string trouble_with(node_index peer) const override;

  /// Has `tell` called with every node that is gone from now on, and why, in the network's thread:
  /// `cancelled` if it has left on purpose. An empty function ends that.
  void on_loss(std::function<void(node_index, const error&)> tell);

  /// Where it listens, if anywhere: "127.0.0.1:2222".
  [[nodiscard]] std::string listening_at() const;

  /// Says goodbye to all peers when everything sent before is written, and ends.
  /// @param timeout At most so long. Thread: not an actor's.
  void leave(std::chrono::milliseconds timeout);

  void send(const node_address& from, parcel message) override;

private:
  class implementation;

  socket_network();

  std::shared_ptr<implementation> implementation_; ///< Weakly, of `arrivals`, too.
};

} // namespace troupe
