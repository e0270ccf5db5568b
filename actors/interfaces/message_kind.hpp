// SPDX-License-Identifier: Apache-2.0
// The name of a message, and the step that it is about, for observers.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <typeinfo>

namespace caf {
class message;
} // namespace caf

namespace troupe {

/// Stands for a message that is about no step.
inline constexpr uint64_t no_step = std::numeric_limits<uint64_t>::max();

/// A kind of message. There is one object for each, and it lives as long as the process.
struct message_kind {
  const std::type_info* type;            ///< The C++ type that actors match on; null for CAF's own.
  uint16_t number;                       ///< CAF's number for its own kinds; 0 for ours.
  const char* name;                      ///< The schema's name ("PushGradient"), or the C++ one.
  uint64_t (*step)(const void* message); ///< The step that a message is about, or `no_step`.
};

/// The kind of an actor's message, from what CAF knows of its type; null if it is none of ours.
/// Cost: a look into a hash table, some 2 ns. Thread: any.
[[nodiscard]] const message_kind* find_message_kind(uint16_t number, const std::type_info* type);

/// The step that an actor's message is about, or `no_step`. Thread: any.
[[nodiscard]] uint64_t step_of(const caf::message& content);

/// All kinds of messages.
[[nodiscard]] std::span<const message_kind> message_kinds();

} // namespace troupe
