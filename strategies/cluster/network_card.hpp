// SPDX-License-Identifier: Apache-2.0
// The network cards of a machine, and the choice of one to listen on.
#pragma once

#include "messages/errors/errc.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// An address of this machine and the card it belongs to; a card with two addresses is there twice.
struct network_card {
  std::string name;    ///< "eth0"
  std::string address; ///< "192.168.0.7" or "fd00::7"

  bool operator==(const network_card&) const = default;
};

/// A machine has several networks, and only one of them is the one that its peers are in. Chooses
/// as NCCL does, by the syntax of its NCCL_SOCKET_IFNAME:
///
/// | wanted | cards |
/// |---|---|
/// | "eth,ib" | with names that begin so; of the first word that fits any |
/// | "=eth0,eth1" | with exactly these names |
/// | "^docker,virbr" | all but those with names that begin so |
/// | "^=eth2" | all but those with exactly this name |
/// | "" | all; those of containers and virtual machines only if there are no others |
///
/// The loopback card is chosen only if it is named. Among the cards that remain, the first one with
/// an IPv4 address is taken, else the first. Errors: not_found, naming the cards there are.
/// Source: NCCL, "Environment Variables", NCCL_SOCKET_IFNAME.
[[nodiscard]] expected<network_card> choose_network_card(std::span<const network_card> cards,
                                                         std::string_view wanted);

/// The cards of this machine that are up, in the system's order, without link-local addresses.
/// Errors: resource.
[[nodiscard]] expected<std::vector<network_card>> network_cards();

} // namespace troupe
