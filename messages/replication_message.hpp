// SPDX-License-Identifier: Apache-2.0
// Messages about owners that are replicated, made of our own types and read back.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// An owner tells its mirror what it holds. The message refers to the arrays where they lie.
/// @param closed The last step of which it knows; nothing: none yet.
/// @param made Changes that may be asked for again.
[[nodiscard]] msg<wire::MirrorState> make_mirror_state(const variable_payload& state,
                                                       const std::optional<closed_step>& closed,
                                                       std::span<const made_change> made = {});

/// A failover client wants to know the holder of a variable.
/// @param closes_steps Whether it asks for gradients.
[[nodiscard]] msg<wire::FollowOwner> make_follow_owner(uint32_t variable, bool closes_steps);

/// A mirror is to hold its variable from now on. @param term How often it has moved, with this.
[[nodiscard]] msg<wire::TakeOver> make_take_over(uint64_t term);

/// A mirror holds its variable. @param term As it was told.
/// @param closed The last step of which it knows; nothing: none yet.
[[nodiscard]] msg<wire::TookOver> make_took_over(uint64_t term,
                                                 const std::optional<closed_step>& closed);

/// The variable has no holder. @pre `reason` is an error.
[[nodiscard]] msg<wire::TookOver> make_nobody_took_over(const error& reason);

/// A failover client speaks to the mirror.
[[nodiscard]] msg<wire::OwnerFollowed> make_owner_followed();

/// The directory has heard of a failover client. @param client As in the schema.
[[nodiscard]] msg<wire::OwnerFollowed> make_client_known(uint64_t client);

/// A newcomer may be a variable's mirror. @param mirror Which one.
[[nodiscard]] msg<wire::OwnerFollowed> make_mirror_wanted(uint32_t mirror);

/// Owners or mirrors are gone. @param reason Cut after `limits::text_bytes_max`.
[[nodiscard]] msg<wire::OwnersLost> make_owners_lost(std::string_view reason);

/// A newcomer wants to hold a variable, too. @param is_mirrors Whether in the mirror's place.
/// @param is_filled Whether it knows what its owner holds.
[[nodiscard]] msg<wire::OfferMirror> make_offer_mirror(uint32_t variable, bool is_mirrors,
                                                       bool is_filled);

/// The holder of a variable cannot reach its mirror. @param mirror Which one.
[[nodiscard]] msg<wire::OfferMirror> make_miss_mirror(uint32_t variable, uint32_t mirror);

/// A newcomer wants to be told all that an owner holds, and each change. @param mirror Which of the
/// variable's mirrors it is.
[[nodiscard]] msg<wire::RepeatChanges> make_repeat_changes(uint32_t mirror);

/// Variables are held twice again. @param reason Cut after `limits::text_bytes_max`.
[[nodiscard]] msg<wire::OwnersMirrored> make_owners_mirrored(std::string_view reason);

/// The gradients that a report names.
[[nodiscard]] std::vector<arrival> read_arrivals(capnp::List<wire::Arrival>::Reader from);

/// Changes that a mirror is told of. An array refers to the message. @param owner Keeps that alive.
[[nodiscard]] std::vector<made_change> read_made_changes(capnp::List<wire::MadeChange>::Reader from,
                                                         const std::shared_ptr<const void>& owner);

/// The last step of an owner; nothing, if there was none.
[[nodiscard]] std::optional<closed_step> read_closed_step(wire::ClosedStep::Reader from);

} // namespace troupe
