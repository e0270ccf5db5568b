// SPDX-License-Identifier: Apache-2.0
// A connection as bytes, with or without TLS.
#pragma once

#include "messages/errors/errc.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility> // Boost 1.74 misses it in C++20
#include <vector>

namespace troupe {

/// The files with which nodes prove to each other that they belong together: in PEM.
struct tls_files {
  std::string authority;   ///< Certificate of the authority that signed all nodes' certificates.
  std::string certificate; ///< This node's, with all that lead up to the authority.
  std::string key;         ///< Private key of this node's certificate.
};

/// The first `count` bytes are written. @pre There are as many.
void drop_front(std::vector<boost::asio::const_buffer>& buffers, size_t count);

class read_watch;

/// Certificate, key and trust, shared by all TLS connections of a node.
class tls_identity;

/// Errors: not_found, malformed or invalid_argument, naming the file: it cannot be read, is no PEM,
/// or key and certificate do not belong together.
[[nodiscard]] expected<std::shared_ptr<tls_identity>> load_tls_identity(const tls_files& files);

/// A connection of any kind: TCP, or a local socket.
using stream_socket = boost::asio::generic::stream_protocol::socket;

/// All kinds of connections look the same to a link. Handlers are called from the socket's
/// executor, never from inside a member; after `close` with an error.
///
/// Thread: one at a time, but for `write_now`, which may run beside reading, and not beside
/// `close`.
class byte_stream {
public:
  using handler = std::function<void(const boost::system::error_code&, size_t bytes)>;

  virtual ~byte_stream() = default;

  /// Agrees with the other side on how to speak; both have to.
  virtual void shake_hands(bool is_dialer, handler done) = 0;

  /// Reads as many bytes as there are, but at least one; or, of the many that a long buffer takes,
  /// a good part, unless there is `hurry`. @pre As many as a long buffer takes will come.
  virtual void read_some(boost::asio::mutable_buffer into, handler done) = 0;

  /// Lets the present `read_some` end with the bytes that there are, however few.
  virtual void hurry() = 0;

  /// Writes all of it. The buffers' memory must live until `done`.
  virtual void write(std::span<const boost::asio::const_buffer> buffers, handler done) = 0;

  /// Writes what can be written without waiting, in the calling thread. @pre No `write` is going
  /// on.
  /// @returns How many bytes that were; maybe none.
  [[nodiscard]] virtual size_t write_now(std::span<const boost::asio::const_buffer> buffers) = 0;

  /// No more will be written; the other side reads the end.
  virtual void finish() = 0;

  virtual void close() = 0;

  /// The failure in words for people: "it closed the connection". `failed_precondition` if one side
  /// does not trust the other's certificate, so that trying again is of no use.
  [[nodiscard]] virtual error explain(const boost::system::error_code& failure) const = 0;

  /// "10.0.0.3:4711", or "process 4711 of this machine", of the other side.
  [[nodiscard]] virtual std::string peer() const = 0;
};

/// The stream that suits a socket: TLS, TCP, or a local one with shared memory.
/// @param identity Null: without TLS. @param reads The reads of the thread that runs the socket's
/// executor; outlives the stream.
[[nodiscard]] std::unique_ptr<byte_stream>
make_byte_stream(stream_socket socket, std::shared_ptr<tls_identity> identity, read_watch& reads);

} // namespace troupe
