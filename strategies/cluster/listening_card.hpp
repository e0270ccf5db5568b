// SPDX-License-Identifier: Apache-2.0
// The network card that a task of a cluster listens on.
#pragma once

#include "strategies/cluster/environment.hpp"
#include "strategies/cluster/network_card.hpp"
#include "strategies/cluster/resolved_cluster.hpp"

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// The network cards of a machine, and how it resolves the names of hosts.
struct machine_networks {
  std::vector<network_card> cards;
  /// The addresses that a host has here; those of an address in numbers are itself.
  std::function<expected<std::vector<std::string>>(const std::string& host)> addresses_of;
};

/// The networks of this machine. @param timeout For each call of the system's resolver.
/// Errors: as `network_cards`, and as `look_up` when it is asked.
[[nodiscard]] expected<machine_networks> own_networks(std::chrono::milliseconds timeout,
                                                      const std::stop_token& stop = {});

/// The card that was asked for, as `choose_network_card` takes it: `interface`, else
/// NCCL_SOCKET_IFNAME; empty if none was. A task that is dialed at a loopback address has no
/// choice of cards, whatever the variable says to NCCL. @pre cluster.own
[[nodiscard]] std::string wanted_card(const resolved_cluster& cluster, const std::string& interface,
                                      const environment_reader& environment);

/// A task is to listen where the others dial it, which is not always where its own machine looks
/// for it: Debian has the machine's name lead to 127.0.1.1, which no other machine reaches.
///
/// | own address | card |
/// |---|---|
/// | any, and a card is wanted | that one |
/// | `localhost`, `127.0.0.1`, `::1` | loopback |
/// | leads to a card of this machine | that one |
/// | leads to loopback, and all tasks are at this host | loopback |
/// | leads to loopback, and others are elsewhere | as `choose_network_card` takes it for "" |
///
/// @returns The card, with the address to listen at. @pre cluster.own
/// Errors: invalid_argument for an address that is none, or none of this machine's; not_found if
/// there is no such card; those of `addresses_of`.
[[nodiscard]] expected<network_card> listening_card(const resolved_cluster& cluster,
                                                    const std::string& wanted,
                                                    const machine_networks& machine);

/// The warning if the tasks that dial this one do not reach the card that was wanted: a loopback
/// one, while they are elsewhere, or the other way round. Empty if there is nothing to tell.
[[nodiscard]] std::string listening_note(const resolved_cluster& cluster, const std::string& wanted,
                                         const network_card& card);

} // namespace troupe
