// SPDX-License-Identifier: Apache-2.0
// The turn to write, as threads come and go.
#include "actors/net/sockets/shared_outbox.hpp"

#include <utility>

namespace troupe {

// ---- a sender ----

shared_outbox::turn shared_outbox::send(encoded_parcel message) {
  std::lock_guard guard{mutex_};
  if (is_closed_) return {};
  outbox_.add(std::move(message));
  if (outbox_.bytes() > bytes_max_) {
    is_closed_ = true;
    return {.overflows = true};
  }
  return give_turn(writer::sender);
}

bool shared_outbox::end_send(size_t written) {
  std::lock_guard guard{mutex_};
  auto is_awaited = std::exchange(is_awaited_, false);
  if (written == batch_.bytes && outbox_.is_empty() && !is_awaited) {
    batch_.clear();
    writer_ = writer::none;
    return false;
  }
  batch_.drop_front(written);
  writer_ = writer::link;
  return true;
}

// @pre `mutex_` is held.
shared_outbox::turn shared_outbox::give_turn(writer to) {
  if (writer_ != writer::none) return {};
  batch_.clear();
  auto any = outbox_.fill(batch_);
  if (any) writer_ = to;
  has_written_ = has_written_ || any;
  return {.begins = any, .recalled = outbox_.take_recalled()};
}

// ---- the link's thread ----

void shared_outbox::add_signal(const frame_header& header, std::optional<message_frame> body) {
  std::lock_guard guard{mutex_};
  outbox_.add_signal(header, std::move(body));
}

void shared_outbox::add_credit(lane of, uint64_t bytes) {
  std::lock_guard guard{mutex_};
  outbox_.add_credit(of, bytes);
}

void shared_outbox::set_window(uint64_t window) {
  std::lock_guard guard{mutex_};
  outbox_.set_window(window);
}

shared_outbox::turn shared_outbox::begin_write() {
  std::lock_guard guard{mutex_};
  return give_turn(writer::link);
}

void shared_outbox::end_write() {
  std::lock_guard guard{mutex_};
  batch_.clear();
  writer_ = writer::none;
}

bool shared_outbox::is_idle() {
  std::lock_guard guard{mutex_};
  is_awaited_ = writer_ == writer::sender;
  return writer_ == writer::none && outbox_.is_empty();
}

void shared_outbox::drop_all() {
  std::lock_guard guard{mutex_};
  is_closed_ = true;
  outbox_.drop_all();
}

bool shared_outbox::close() {
  std::lock_guard guard{mutex_};
  is_closed_ = true;
  is_awaited_ = writer_ == writer::sender;
  return !is_awaited_;
}

bool shared_outbox::has_waiting(lane of) const {
  std::lock_guard guard{mutex_};
  return outbox_.has_waiting(of);
}

bool shared_outbox::is_starved() const {
  std::lock_guard guard{mutex_};
  return outbox_.is_starved();
}

uint64_t shared_outbox::bytes() const {
  std::lock_guard guard{mutex_};
  return outbox_.bytes();
}

bool shared_outbox::take_has_written() {
  std::lock_guard guard{mutex_};
  return std::exchange(has_written_, false);
}

} // namespace troupe
