// SPDX-License-Identifier: Apache-2.0
// One connection between two nodes.
#pragma once

#include "actors/net/sockets/byte_stream.hpp"
#include "actors/net/sockets/inbox.hpp"
#include "actors/net/sockets/peer_watch.hpp"
#include "actors/net/sockets/shared_outbox.hpp"
#include "messages/link_message.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The node that a link speaks for, and what both ends may expect of each other.
struct link_options {
  greeting self; ///< This node's hello.
  bool is_dialer = false;
  std::chrono::nanoseconds silence_timeout{0}; ///< A peer that is silent for longer is gone.
  uint64_t message_bytes_max = 0;
  uint64_t part_bytes_max = 0;
  std::shared_ptr<array_places> arrays; ///< Where arrays that the peer sends are expected.

  /// The peer's hello must have come by then.
  std::chrono::nanoseconds hello_timeout{std::chrono::seconds{5}};
};

/// Two nodes that talk share one link. It greets, checks its peer, takes frames to the other side
/// by rank, brings messages, and notices when the peer is gone: at once if its process ended, after
/// the timeout if it says nothing any more.
///
/// Life: greeting, greeted, up, ended; what it ended with is told once, whatever it was. It is up
/// when the peer's hello has come, and the peer has had this node's: so none is given up that does
/// not know that it was taken in.
/// Thread: the io_context's, but for `send`.
class link : public std::enable_shared_from_this<link> {
public:
  /// Called in the io_context's thread.
  struct callbacks {
    /// The peer's greeting, at its hello and again before the link goes up.
    /// Errors: why it is refused, which it is told.
    std::function<expected<void>(link&, const greeting&)> on_hello;
    std::function<void(link&)> on_up;
    /// Errors: the link ends with it, and the peer is told.
    std::function<expected<void>(link&, received_frame)> on_parcel;
    /// `cancelled` if the peer left on purpose.
    std::function<void(link&, const error&)> on_end;
    /// After `on_end`: the connection is closed, too. Until then last words may be on their way.
    std::function<void(link&)> on_closed;
    std::function<void(link&, const std::string&)> on_warning;
    /// A message was recalled before it was sent to its end; its header.
    std::function<void(link&, const frame_header&)> on_recalled;
  };

  link(std::shared_ptr<boost::asio::io_context> io, std::unique_ptr<byte_stream> stream,
       link_options options, callbacks callbacks);

  void start();

  /// Takes a message to the other side, some time. Without effect once the link has ended.
  /// Thread: any.
  void send(encoded_parcel message);

  /// Says goodbye when everything before is written, and ends with `cancelled`.
  void leave();

  /// Ends now; the peer is told, and the connection closed after that, or half a second later.
  void end(const error& reason);

  /// Ends now, if it has not yet, and closes the connection without a word.
  void drop(const error& reason);

  [[nodiscard]] bool is_up() const { return state_ == phase::up; }

  /// Whether the peer has said hello, and was accepted: it may have gone up already.
  [[nodiscard]] bool is_greeted() const { return state_ == phase::greeted; }

  /// The node that the link is with, as the peer said. @pre The link was up.
  [[nodiscard]] const greeting& peer() const { return peer_; }

  /// "10.0.0.3:4711".
  [[nodiscard]] const std::string& peer_address() const { return peer_address_; }

  /// For how long nothing was heard of the peer that should have been, while this process ran: a
  /// multiple of the time after which a peer with nothing to say says so.
  [[nodiscard]] std::chrono::nanoseconds silence() const { return watch_.silence(); }

  /// Whether messages of a lane wait to be sent. Thread: any.
  [[nodiscard]] bool has_waiting(lane of) const { return outbox_.has_waiting(of); }

  /// Messages that wait to be sent. Thread: any.
  [[nodiscard]] uint64_t bytes_waiting() const { return outbox_.bytes(); }

private:
  enum class phase : uint8_t {
    greeting, ///< Until the peer's hello.
    greeted,  ///< Until it shows that it has had this node's, if the peer has dialed.
    up,
    leaving, ///< Until everything before is written.
    left,    ///< The goodbye is said; until the peer closes.
    ended,   ///< Last words may be on their way.
    closing, ///< The connection closes as soon as no sender writes to it.
    closed,
  };

  template <class Action>
  void post(Action action); ///< To the io_context's thread, if the link is there then.
  void give_up_after(std::chrono::nanoseconds limit, std::string_view trouble);
  void go_up();
  void read();
  void on_read(const boost::system::error_code& failed, size_t bytes);
  expected<void> on_frame(received_frame frame);
  expected<void> on_known(const received_frame& frame);
  expected<void> on_hello(const received_frame& frame);
  expected<void> on_abort(const received_frame& frame);

  void write_signal(const frame_header& header, std::optional<message_frame> body = {});
  void say_hello();
  void write_more();
  void write_rest();
  void write();
  void on_written(const boost::system::error_code& failed);
  void tell_recalled(const std::vector<frame_header>& headers);
  void finish_writing();

  void plan_tick();
  void on_tick();
  void give_back(lane of, uint64_t bytes);
  void close();

  std::shared_ptr<boost::asio::io_context> io_;
  std::unique_ptr<byte_stream> stream_;
  link_options options_;
  callbacks callbacks_;
  std::string peer_address_;
  phase state_ = phase::greeting;
  greeting peer_;              ///< Until its hello has come, what it knows alone.
  std::optional<inbox> inbox_; ///< From the start on.
  shared_outbox outbox_;
  peer_watch watch_;
  boost::asio::steady_timer ticker_;
};

} // namespace troupe
