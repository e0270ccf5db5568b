// SPDX-License-Identifier: Apache-2.0
// A link's life: hello, frames both ways, heartbeats, the end.
#include "actors/net/sockets/link.hpp"

#include "actors/net/silence_timeout.hpp"
#include "actors/recording/seconds.hpp"
#include "messages/errors/printable.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// Bytes that a stranger may make a link keep until its hello has come.
constexpr uint64_t hello_bytes_max = 32'768;

// A known message takes 24 bytes, its name, and up to 8 bytes behind that.
static_assert(limits::own_messages_max * (24 + limits::own_name_bytes_max + 8) < hello_bytes_max);

// Last words are given so long to arrive.
constexpr std::chrono::milliseconds farewell_time{500};

frame_limits limits_of(const link_options& options, bool is_trusted) {
  if (!is_trusted) return {.hello_bytes_max = hello_bytes_max};
  return {options.message_bytes_max, options.part_bytes_max, hello_bytes_max};
}

} // namespace

link::link(std::shared_ptr<asio::io_context> io, std::unique_ptr<byte_stream> stream,
           link_options options, callbacks callbacks)
  : io_(std::move(io)), stream_(std::move(stream)), options_(std::move(options)),
    callbacks_(std::move(callbacks)), peer_address_(stream_->peer()),
    outbox_(options_.part_bytes_max, options_.self.window + options_.message_bytes_max),
    watch_(options_.silence_timeout), ticker_(*io_) {}

// An action that is posted after the io_context's threads have ended stays in the io_context, and
// so must not keep the link, which keeps the io_context.
template <class Action>
void link::post(Action action) {
  asio::post(*io_, [weak = weak_from_this(), action = std::move(action)] {
    if (auto self = weak.lock()) action(*self);
  });
}

void link::start() {
  auto self = shared_from_this();
  auto retained = std::make_shared<retained_bytes>(
    [weak = weak_from_this()](lane of, uint64_t bytes) {
      // The thread that lets go of a message may hold any lock: the rest is done elsewhere.
      if (auto alive = weak.lock())
        alive->post([of, bytes](link& self) { self.give_back(of, bytes); });
    },
    options_.self.window / 4);
  inbox_.emplace(limits_of(options_, false), options_.self.window, std::move(retained),
                 options_.arrays);
  give_up_after(options_.hello_timeout, "it sent no hello");
  stream_->shake_hands(options_.is_dialer, [self](const error_code& failed, size_t) {
    if (failed) return self->drop(self->stream_->explain(failed));
    if (self->options_.is_dialer) self->say_hello();
    self->read();
  });
}

void link::give_up_after(std::chrono::nanoseconds limit, std::string_view trouble) {
  ticker_.expires_after(limit);
  ticker_.async_wait([self = shared_from_this(), limit, trouble](const error_code& failed) {
    if (!failed && self->state_ < phase::up)
      self->drop({errc::deadline_exceeded, fmt::format("{} within {} s", trouble, seconds(limit))});
  });
}

// ---- what comes ----

void link::read() {
  stream_->read_some(inbox_->space(),
                     [self = shared_from_this()](const error_code& failed, size_t bytes) {
                       self->on_read(failed, bytes);
                     });
}

void link::on_read(const error_code& failed, size_t bytes) {
  if (state_ >= phase::ended) return;
  if (failed && state_ >= phase::leaving) return drop({errc::cancelled, "we have left"});
  if (failed) return drop(stream_->explain(failed));
  watch_.hear(bytes);
  auto taken = inbox_->take(bytes, [this](received_frame frame) {
    return state_ >= phase::ended ? expected<void>{} : on_frame(std::move(frame));
  });
  if (!taken) return end(taken.error());
  if (state_ < phase::ended) read();
}

expected<void> link::on_frame(received_frame frame) {
  switch (frame.header.kind) {
  case frame_kind::known:
    return on_known(frame);
  case frame_kind::hello:
    return on_hello(frame);
  case frame_kind::abort:
    return on_abort(frame);
  default:
    break;
  }
  if (state_ == phase::greeting) return fail(errc::malformed, "it sends messages before its hello");
  if (state_ == phase::greeted) {
    // Another connection may have been taken in meanwhile.
    if (auto accepted = callbacks_.on_hello(*this, peer_); !accepted) return accepted;
    go_up();
  }
  if (frame.header.kind == frame_kind::parcel) return callbacks_.on_parcel(*this, std::move(frame));
  if (frame.header.kind == frame_kind::credit) {
    outbox_.add_credit(frame.header.lane, frame.header.id);
    write_more();
  }
  return {};
}

expected<void> link::on_known(const received_frame& frame) {
  if (state_ != phase::greeting || !peer_.known.empty())
    return fail(errc::malformed, "it says twice, or late, which messages it knows");
  auto known = read_known_messages(frame.body);
  if (!known) return tl::unexpected<error>(known.error());
  if (known->empty()) return fail(errc::malformed, "it says that it knows no messages");
  peer_.known = std::move(*known);
  return {};
}

expected<void> link::on_hello(const received_frame& frame) {
  if (state_ != phase::greeting) return fail(errc::malformed, "it says hello twice");
  auto hello = decode<wire::Hello>(frame.body);
  if (!hello) return tl::unexpected<error>(hello.error());
  auto peer = read_hello(hello->reader());
  peer.known = std::move(peer_.known);
  if (auto accepted = callbacks_.on_hello(*this, peer); !accepted) return accepted;
  peer_ = std::move(peer);
  state_ = phase::greeted;
  watch_.allow(peer_.heartbeat);
  inbox_->trust(limits_of(options_, true));
  outbox_.set_window(peer_.window);
  if (options_.is_dialer) {
    write_signal({.kind = frame_kind::heartbeat});
    go_up();
  } else {
    say_hello();
    give_up_after(std::max(options_.hello_timeout, watch_.silence_timeout()),
                  "it did not answer our hello");
  }
  return {};
}

void link::go_up() {
  state_ = phase::up;
  plan_tick();
  callbacks_.on_up(*this);
}

expected<void> link::on_abort(const received_frame& frame) {
  auto abort = decode<wire::Abort>(frame.body);
  if (!abort) return tl::unexpected<error>(abort.error());
  auto code = static_cast<errc>(abort->reader().getCode());
  auto words = printable(abort->reader().getReason().cStr());
  if (code == errc::none)
    drop({errc::cancelled, "it has left"});
  else if (state_ < phase::up)
    drop({code, fmt::format("it says: {}", words)});
  else // the words are about this process
    drop({code, fmt::format("it has given this process up: '{}'", words)});
  return {};
}

// Credit for what actors have let go of.
void link::give_back(lane of, uint64_t bytes) {
  if (state_ >= phase::ended) return;
  write_signal({.kind = frame_kind::credit, .lane = of, .id = bytes});
}

// ---- what goes ----

void link::write_signal(const frame_header& header, std::optional<message_frame> body) {
  auto whole = header;
  whole.body_bytes = body ? body->bytes() : 0;
  outbox_.add_signal(whole, std::move(body));
  write_more();
}

void link::say_hello() {
  if (!options_.self.known.empty())
    write_signal({.kind = frame_kind::known}, make_known_messages(options_.self.known));
  write_signal({.kind = frame_kind::hello}, *frame(make_hello(options_.self)));
}

void link::send(encoded_parcel message) {
  auto turn = outbox_.send(std::move(message));
  if (turn.overflows)
    return post([](link& self) {
      self.end({errc::limit_exceeded,
                fmt::format("it reads too slowly, or is sent more in a step than its window "
                            "(--window): {} bytes wait for it, and a link keeps {}",
                            self.bytes_waiting(),
                            self.options_.self.window + self.options_.message_bytes_max)});
    });
  tell_recalled(turn.recalled);
  if (!turn.begins) return;
  auto written = stream_->write_now(outbox_.buffers());
  if (outbox_.end_send(written)) post([](link& self) { self.write_rest(); });
}

void link::write_more() {
  auto turn = outbox_.begin_write();
  tell_recalled(turn.recalled);
  if (turn.begins) write();
}

// Writes what a sender has left, or what came meanwhile; or closes.
void link::write_rest() {
  if (state_ >= phase::closing) return close();
  write(); // an empty batch is as good as one that was written
}

void link::write() {
  stream_->write(outbox_.buffers(), [self = shared_from_this()](const error_code& failed, size_t) {
    self->on_written(failed);
  });
}

void link::on_written(const error_code& failed) {
  outbox_.end_write();
  if (failed) return; // reading fails too, and may have a reason to tell before
  write_more();
  if (state_ >= phase::leaving) finish_writing();
}

void link::tell_recalled(const std::vector<frame_header>& headers) {
  for (const auto& header : headers)
    post([header](link& self) { self.callbacks_.on_recalled(self, header); });
}

// The goodbye goes behind everything else; nothing goes behind the last word.
void link::finish_writing() {
  if (!outbox_.is_idle()) return;
  if (state_ != phase::leaving) return stream_->finish();
  state_ = phase::left;
  write_signal({.kind = frame_kind::abort},
               *frame(make_abort({errc::none, "it leaves on purpose"})));
}

// ---- whether the peer is there ----

void link::plan_tick() {
  ticker_.expires_after(watch_.tick());
  ticker_.async_wait([self = shared_from_this()](const error_code& failed) {
    if (!failed && self->state_ < phase::ended) self->on_tick();
  });
}

void link::on_tick() {
  auto silent_ticks = watch_.count_silence();
  if (silent_ticks >= ticks_in_timeout)
    return end({errc::unavailable, fmt::format("nothing was heard of it for {:.1f} s",
                                               seconds(watch_.silence_timeout()))});
  if (silent_ticks > 0) stream_->hurry(); // a slow link is not a silent one
  if (watch_.count_starvation(outbox_.is_starved()))
    callbacks_.on_warning(*this,
                          fmt::format("it has not let go of {} bytes that it was sent {} s "
                                      "ago; {} more wait",
                                      peer_.window, starved_timeout.count(), bytes_waiting()));
  if (!outbox_.take_has_written()) write_signal({.kind = frame_kind::heartbeat});
  plan_tick();
}

// ---- the end ----

void link::leave() {
  if (state_ >= phase::ended) return;
  if (state_ != phase::up) return drop({errc::cancelled, "we have left"});
  state_ = phase::leaving;
  finish_writing();
}

void link::end(const error& reason) {
  if (state_ >= phase::ended) return;
  // A peer that cannot even say hello would not understand why.
  if (state_ == phase::greeting && reason.code == errc::malformed) return drop(reason);
  outbox_.drop_all();
  state_ = phase::ended;
  write_signal({.kind = frame_kind::abort}, *frame(make_abort(reason)));
  // Closing at once could overtake the words, if there is something of the peer's to be read.
  ticker_.expires_after(farewell_time);
  ticker_.async_wait([self = shared_from_this()](const error_code&) { self->close(); });
  callbacks_.on_end(*this, reason);
}

void link::drop(const error& reason) {
  ticker_.cancel();
  if (state_ < phase::ended) {
    state_ = phase::ended;
    callbacks_.on_end(*this, reason);
  }
  close();
}

// The descriptor of a closed connection may be another's at once: no thread may be writing to it.
void link::close() {
  if (state_ == phase::closed) return;
  state_ = phase::closing;
  if (!outbox_.close()) return; // the sender has this called again
  state_ = phase::closed;
  stream_->close();
  callbacks_.on_closed(*this);
}

} // namespace troupe
