// SPDX-License-Identifier: Apache-2.0
// The last messages of every actor as a text: what a job did before it hung or died.
#pragma once

#include "actors/observing/observatory.hpp"
#include "messages/errors/errc.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

namespace troupe {

/// Where a flight record goes, piece by piece.
struct flight_sink {
  void (*write)(void* where, const char* bytes, size_t count);
  void* where;
};

/// Writes each actor of `observed` with its figures and its last messages, oldest first.
/// @param reason Why, for the first line.
/// Thread: any; and safe in a signal handler, whatever it interrupted, if the sink is.
void write_flight_record(const observatory& observed, const char* reason, flight_sink sink);

/// The same as a text.
[[nodiscard]] std::string flight_record(const observatory& observed, const std::string& reason);

/// The same into the file at `path`, in place of what was there.
/// Errors: resource, with the path and the system's reason.
[[nodiscard]] expected<void> save_flight_record(const observatory& observed,
                                                const std::string& reason,
                                                const std::filesystem::path& path);

} // namespace troupe
