// SPDX-License-Identifier: Apache-2.0
// A peer that speaks to a node without being one.
#pragma once

#include "actors/net/frame_header.hpp"
#include "messages/decode.hpp"
#include "messages/frame.hpp"
#include "messages/link_message.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include <optional>
#include <string>
#include <utility> // Boost 1.74 misses it in C++20
#include <vector>

namespace troupe::test {

/// A socket in a test's hand; every call waits, and returns false or nothing if it fails.
class hostile_peer {
public:
  /// @param address As `socket_network::listening_at` says it.
  explicit hostile_peer(const std::string& address) : socket_(io_) {
    auto colon = address.rfind(':');
    boost::asio::ip::tcp::resolver resolver{io_};
    boost::asio::connect(socket_,
                         resolver.resolve(address.substr(0, colon), address.substr(colon + 1)));
  }

  /// @returns Whether all of it could be written.
  bool write(std::span<const std::byte> bytes) {
    boost::system::error_code failed;
    boost::asio::write(socket_, boost::asio::buffer(bytes.data(), bytes.size()), failed);
    return !failed;
  }

  bool write(const frame_header& header, std::span<const std::byte> body = {}) {
    auto whole = header;
    whole.body_bytes = body.size();
    return write(write_frame_header(whole)) && write(body);
  }

  /// The peer's hello, and that it has had the node's.
  bool greet(const greeting& who) {
    return say_hello(who) && write({.kind = frame_kind::heartbeat});
  }

  bool say_hello(const greeting& who) {
    auto hello = flatten(*frame(make_hello(who)));
    return write({.kind = frame_kind::hello}, hello);
  }

  /// The next frame's header; its body is in `body`. Nothing, if the connection is at its end.
  std::optional<frame_header> read() {
    frame_header_block block;
    boost::system::error_code failed;
    boost::asio::read(socket_, boost::asio::buffer(block), failed);
    if (failed) return std::nullopt;
    constexpr frame_limits any{UINT64_MAX, UINT64_MAX, UINT64_MAX};
    auto header = read_frame_header(block, any).value();
    body.resize(header.body_bytes / sizeof(uint64_t));
    boost::asio::read(socket_, boost::asio::buffer(body), failed);
    if (failed) return std::nullopt;
    return header;
  }

  /// Reads to the end of the connection. @returns The reason that the other side gave, if any.
  std::string last_words() {
    std::string words;
    while (auto header = read())
      if (header->kind == frame_kind::abort) words = abort_text();
    return words;
  }

  std::vector<uint64_t> body;

private:
  [[nodiscard]] std::string abort_text() const {
    auto copy = std::make_shared<std::vector<uint64_t>>(body);
    auto abort = decode<wire::Abort>({std::as_bytes(std::span(*copy)), copy});
    return abort ? abort->reader().getReason().cStr() : "unreadable";
  }

  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_;
};

} // namespace troupe::test
