// SPDX-License-Identifier: Apache-2.0
// Errors: a code with a sentence, and the result type that carries a value or an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace troupe {

/// The kind of a failure, so coarse that each code stands for one different reaction of a caller.
/// The values travel in messages (`Errc` in `messages/training.capnp`): never reorder or reuse one.
enum class errc : uint8_t {
  /// Nothing went wrong; never carried by an `error`.
  none = 0,
  /// An argument has a value that this call refuses; mend the call.
  invalid_argument = 1,
  /// An argument is of another dtype or kind than the call needs.
  type_mismatch = 2,
  /// The call is legal, but not in this context (replica, cross-replica, update).
  wrong_context = 3,
  /// The object is not yet, or no longer, in a state that allows the call.
  failed_precondition = 4,
  /// A name, file, variable or actor does not exist.
  not_found = 5,
  /// An index or position lies beyond the end; at the end of a stream this is the normal end.
  out_of_range = 6,
  /// The other side gave the work up on purpose, because its result is not needed any more.
  cancelled = 7,
  /// A wait ran past its deadline.
  deadline_exceeded = 8,
  /// A peer is gone or cannot be reached.
  unavailable = 9,
  /// The job cannot make another step: too few live replicas or too few tokens.
  stalled = 10,
  /// Bytes from a peer or a file are not what they claim to be.
  malformed = 11,
  /// A size or count is over a stated limit.
  limit_exceeded = 12,
  /// The operating system or a device refused (disk full, permission, out of memory).
  resource = 13,
  /// Code of the user (a replica function, a merge function) threw.
  user_code = 14,
  /// The call is part of the interface, but not offered for this case.
  unimplemented = 15,
};

/// The enumerator's name, for logs and messages.
[[nodiscard]] constexpr std::string_view to_string(errc code) {
  constexpr std::string_view names[] = {"none",
                                        "invalid_argument",
                                        "type_mismatch",
                                        "wrong_context",
                                        "failed_precondition",
                                        "not_found",
                                        "out_of_range",
                                        "cancelled",
                                        "deadline_exceeded",
                                        "unavailable",
                                        "stalled",
                                        "malformed",
                                        "limit_exceeded",
                                        "resource",
                                        "user_code",
                                        "unimplemented"};
  auto index = static_cast<size_t>(code);
  return index < std::size(names) ? names[index] : "unknown";
}

/// A failure: its code, and one line that names the culprit and how to mend it.
struct error {
  errc code = errc::none;
  std::string message;

  /// Where code of the user threw, if it did and that is known: "worker:2, actor 'reader',
  /// read_record < reader", the innermost function first. For people: it decides nothing, and
  /// errors of different throw sites are equal.
  std::string throw_site{};

  bool operator==(const error& other) const {
    return code == other.code && message == other.message;
  }
};

/// The message with its throw site, if there is one: for a log.
[[nodiscard]] inline std::string with_throw_site(const error& reason) {
  return reason.throw_site.empty() ? reason.message
                                   : reason.message + "; thrown by " + reason.throw_site;
}

/// Either a `T` or the reason why there is none.
template <class T>
using expected = tl::expected<T, error>;

/// Shorthand for the failing branch: `return fail(errc::not_found, "no variable 'w'");`.
[[nodiscard]] inline tl::unexpected<error> fail(errc code, std::string message) {
  return tl::unexpected<error>(error{code, std::move(message)});
}

} // namespace troupe
