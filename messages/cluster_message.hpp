// SPDX-License-Identifier: Apache-2.0
// The messages of processes about the job that they share, each made by one function.
// cluster.capnp says what they mean and when they are sent.
#pragma once

#include "messages/errors/errc.hpp"
#include "messages/msg.hpp"
#include "messages/payload.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// A process that is there; the fields are those of `wire::EnterJob`.
struct entrance {
  uint32_t member = 0;
  std::chrono::nanoseconds clock{0};
  uint64_t seed = 0;
  uint32_t replicas = 0;
  std::string agreement;

  bool operator==(const entrance&) const = default;
};

/// How a job ended, as far as all its processes must know; the fields are those of
/// `wire::JobEnded`.
struct job_ending {
  uint64_t step = 0;
  std::optional<error> failure;
  std::optional<std::string> stopped;

  bool operator==(const job_ending&) const = default;
};

/// A member is there.
[[nodiscard]] msg<wire::EnterJob> make_enter_job(const entrance& entering);

/// The job begins. The message refers to what replicas kept.
/// @param life How often the receiver was lost.
[[nodiscard]] msg<wire::JobBegins> make_job_begins(uint64_t first_step,
                                                   std::chrono::nanoseconds clock,
                                                   std::span<const replica_progress> replicas,
                                                   uint32_t life = 0);

/// A member wants to know how the job ends.
[[nodiscard]] msg<wire::AwaitEnd> make_await_end(uint32_t member);

/// The job is over. Texts beyond `limits::text_bytes_max` are cut there.
[[nodiscard]] msg<wire::JobEnded> make_job_ended(const job_ending& ending);

/// A member wants to leave.
[[nodiscard]] msg<wire::LeaveJob> make_leave_job(uint32_t member);

/// The fields as a plain value.
[[nodiscard]] entrance read_enter_job(wire::EnterJob::Reader from);

/// Where the job's replicas were; arrays in place.
[[nodiscard]] std::vector<replica_progress> read_replicas(const msg<wire::JobBegins>& from);

/// The fields as a plain value.
[[nodiscard]] job_ending read_job_ended(wire::JobEnded::Reader from);

} // namespace troupe
