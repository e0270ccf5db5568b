// SPDX-License-Identifier: Apache-2.0
// The outbox of a link, filled by many threads and written by one at a time.
#pragma once

#include "actors/net/sockets/outbox.hpp"

#include <boost/asio/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace troupe {

/// A small message costs no change of threads: its sender writes it, and the link's thread writes
/// the rest. But only one thread may write to a connection at a time, and no sender may wait for
/// another. So a thread that finds something to write, and no other thread writing, has the turn
/// until it says that it has written; others leave their messages behind. A sender passes its turn
/// on to the link's thread if it leaves something behind, or if that thread waits for its end.
///
/// Thread: the link's, but for members that say otherwise.
class shared_outbox {
public:
  /// The answer to a thread that may want to write.
  struct turn {
    bool begins = false;                  ///< It has the turn, and writes `buffers`.
    bool overflows = false;               ///< More waits than a link keeps: it must end.
    std::vector<frame_header> recalled{}; ///< As `outbox::take_recalled`, whether it begins or not.
  };

  /// Without credit for messages, until `set_window`.
  /// @param part_bytes_max Parts of messages are no longer. @param bytes_max Charges of messages
  /// that may wait.
  shared_outbox(uint64_t part_bytes_max, uint64_t bytes_max)
    : bytes_max_(bytes_max), outbox_(part_bytes_max, 0) {}

  /// The bytes to write. Thread: the one that has the turn.
  [[nodiscard]] std::span<const boost::asio::const_buffer> buffers() const {
    return batch_.buffers;
  }

  /// Takes a message, and may give the turn for it. Without effect once none is taken any more.
  /// Thread: any.
  [[nodiscard]] turn send(encoded_parcel message);

  /// The turn of a sender is over. @param written So many bytes of `buffers` are written.
  /// Thread: the one that has the turn. @returns Whether the link's thread has the turn now.
  [[nodiscard]] bool end_send(size_t written);

  /// As in `outbox`. They give no turn.
  void add_signal(const frame_header& header, std::optional<message_frame> body);
  void add_credit(lane of, uint64_t bytes);
  void set_window(uint64_t window);

  /// Gives the turn, if there is something to write and no thread writes.
  [[nodiscard]] turn begin_write();

  /// The turn of the link's thread is over: all of `buffers` is written, or writing has failed.
  void end_write();

  /// Whether nothing waits and no thread writes. If a sender writes, it will pass its turn on.
  [[nodiscard]] bool is_idle();

  /// No messages are taken any more, and all that wait are dropped, signals too. New signals may
  /// follow, behind what is being written.
  void drop_all();

  /// No messages are taken any more. @returns Whether no sender writes. If one does, it will pass
  /// its turn on.
  [[nodiscard]] bool close();

  /// As in `outbox`. Thread: any.
  [[nodiscard]] bool has_waiting(lane of) const;
  [[nodiscard]] bool is_starved() const;
  [[nodiscard]] uint64_t bytes() const;

  /// Whether a thread has had the turn since this was last asked.
  [[nodiscard]] bool take_has_written();

private:
  enum class writer : uint8_t { none, link, sender };

  turn give_turn(writer to);

  uint64_t bytes_max_;
  mutable std::mutex mutex_; ///< Guards all below; never held during a system call.
  outbox outbox_;
  write_batch batch_; ///< The writer's, if there is one.
  writer writer_ = writer::none;
  bool is_awaited_ = false;  ///< The link's thread has found a sender writing.
  bool is_closed_ = false;   ///< No messages are taken any more.
  bool has_written_ = false; ///< Since `take_has_written`.
};

} // namespace troupe
