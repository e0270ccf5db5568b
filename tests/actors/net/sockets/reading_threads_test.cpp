// SPDX-License-Identifier: Apache-2.0
// Goal: a node hears all of its peers, however much one of them sends. Method: a read from memory
// that is never at its end, beside a socket.
#include "actors/net/sockets/plain_stream.hpp"
#include "actors/net/sockets/reading_threads.hpp"
#include "tests/actors/net/sockets/stream_outcome.hpp"

#include <boost/asio/io_context.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <unistd.h>

namespace reading_threads_test {

using namespace troupe;
using namespace std::chrono_literals;

namespace asio = boost::asio;

namespace {

/// A read from memory that always has news, until it is over.
class endless_read final : public watched_read {
public:
  explicit endless_read(read_watch& reads) : reads_(reads) { reads_.add(*this); }

  [[nodiscard]] bool has_news() override { return true; }

  [[nodiscard]] bool sleeps() override { return false; }

  void complete() override {
    if (!is_over) reads_.add(*this);
  }

  std::atomic<bool> is_over = false;

private:
  read_watch& reads_;
};

} // namespace

TEST_SUITE("actors/net/sockets/reading_threads") {
  TEST_CASE("sockets have their turn, however much comes through memory") {
    for (auto spin : {0us, 50us}) {
      CAPTURE(spin.count());
      caf::actor_system_config config;
      caf::actor_system system{config};
      read_watch reads;
      asio::io_context io{1};
      auto work = asio::make_work_guard(io);
      auto sockets = socket_pair();
      plain_stream stream{stream_socket{io, {AF_UNIX, 0}, sockets[1]}, "peer", 1, reads};
      endless_read endless{reads};
      std::string into(10, 0);
      std::promise<size_t> read;
      stream.read_some(asio::buffer(into), [&](const boost::system::error_code&, size_t bytes) {
        read.set_value(bytes);
      });
      reading_threads threads{system, io, reads, spin};
      threads.start();
      REQUIRE(::send(sockets[0], "abc", 3, 0) == 3);
      auto bytes = read.get_future();
      auto has_come = bytes.wait_for(30s) == std::future_status::ready;
      endless.is_over = true;
      work.reset();
      threads.join();
      CHECK(has_come);
      ::close(sockets[0]);
    }
  }
}

} // namespace reading_threads_test
