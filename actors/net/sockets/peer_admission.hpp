// SPDX-License-Identifier: Apache-2.0
// Which peers a network takes in: decisions that need neither sockets nor clocks.
#pragma once

#include "actors/net/sockets/socket_network.hpp"
#include "messages/link_message.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace troupe {

/// Whether options go together. Errors: invalid_argument.
[[nodiscard]] expected<void> check(const socket_network_options& options);

/// A node as people know it: "worker:2 (10.0.0.3:2222)". @pre It is in the list.
[[nodiscard]] std::string name_of(const socket_network_options& options, node_index node);

/// Whether this node ever has something to say to another. @pre It is in the list.
[[nodiscard]] bool talks_to(const socket_network_options& options, node_index peer);

/// Whether this node and others of its machine and user may speak over local sockets.
[[nodiscard]] bool goes_past_network(const socket_network_options& options);

/// The hello of this node in one of its lives.
[[nodiscard]] greeting greeting_of(const socket_network_options& options, uint32_t incarnation);

/// Whether a peer is of this job, and may dial this node, or is the node that was dialed.
/// @param peer The peer's greeting.
/// @param dialed The node that was dialed; nothing if the peer has dialed this one.
/// Errors: failed_precondition, saying what does not fit, as the other side is to read it.
[[nodiscard]] expected<void> judge_admission(const socket_network_options& options,
                                             const greeting& peer,
                                             std::optional<node_index> dialed);

/// Which task of those that this node talks to is missing, and how a process says that it is that
/// one: the end of a line about two processes with one task.
[[nodiscard]] std::string free_task(const socket_network_options& options,
                                    const std::function<bool(node_index)>& is_there);

} // namespace troupe
