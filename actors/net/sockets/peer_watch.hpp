// SPDX-License-Identifier: Apache-2.0
// Whether the peer of a link is there, and takes what it is sent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

/// A peer that has let go of nothing for so long is warned of.
constexpr std::chrono::seconds starved_timeout{10};

/// A process that hangs, or a machine that is gone, closes no connection: it only falls silent.
/// Silence is counted in ticks, not read off a clock: if this process itself was stopped for a
/// while, its peers are not to blame.
///
/// Thread: one at a time.
class peer_watch {
public:
  /// @param silence_timeout A peer that is silent for longer is gone.
  explicit peer_watch(std::chrono::nanoseconds silence_timeout)
    : silence_timeout_(silence_timeout) {}

  /// The peer may be silent for three of its heartbeats, if that is longer; to a limit.
  void allow(std::chrono::nanoseconds heartbeat);

  [[nodiscard]] std::chrono::nanoseconds silence_timeout() const { return silence_timeout_; }

  /// How long a tick takes.
  [[nodiscard]] std::chrono::nanoseconds tick() const;

  /// The peer has sent bytes.
  void hear(size_t bytes) { has_heard_ = has_heard_ || bytes > 0; }

  /// A tick is over. @returns For how many nothing has been heard of the peer; it is gone at
  /// `ticks_in_timeout`.
  [[nodiscard]] uint32_t count_silence();

  /// A tick is over. @param is_starved Whether messages wait, and the peer lets go of no others.
  /// @returns Whether that has gone on for `starved_timeout` now: true once.
  [[nodiscard]] bool count_starvation(bool is_starved);

  /// How long the peer has been silent, without the first tick of its silence.
  [[nodiscard]] std::chrono::nanoseconds silence() const;

private:
  std::chrono::nanoseconds silence_timeout_;
  bool has_heard_ = false; ///< Since the last tick.
  uint32_t silent_ticks_ = 0;
  uint32_t starved_ticks_ = 0;
};

} // namespace troupe
