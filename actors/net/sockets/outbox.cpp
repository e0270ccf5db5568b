// SPDX-License-Identifier: Apache-2.0
// Frames, in the order in which they go out.
#include "actors/net/sockets/outbox.hpp"

#include "actors/net/sockets/byte_stream.hpp"
#include "messages/errors/assert.hpp"

#include <algorithm>

namespace troupe {

namespace {

// Limit of the control messages in a batch: a later message must not wait for all of them.
constexpr size_t control_bytes_max = 256 * 1024;

// Limit of the bulk messages in a batch; only one part of a long message is in it.
constexpr size_t bulk_bytes_max = 128 * 1024;

} // namespace

// ---- what goes out at once ----

void write_batch::add_header(const frame_header& header) {
  TROUPE_ASSERT(!is_full());
  headers[frames] = write_frame_header(header);
  add_piece(headers[frames++]);
}

void write_batch::add_piece(std::span<const std::byte> piece) {
  if (piece.empty()) return;
  buffers.emplace_back(piece.data(), piece.size());
  bytes += piece.size();
}

void write_batch::clear() {
  frames = 0;
  bytes = 0;
  bodies.clear();
  buffers.clear();
}

void write_batch::drop_front(size_t count) {
  bytes -= count;
  troupe::drop_front(buffers, count);
}

// ---- what waits ----

outbox::outbox(uint64_t part_bytes_max, uint64_t window) : part_bytes_max_(part_bytes_max) {
  set_window(window);
}

void outbox::set_window(uint64_t window) {
  window_ = std::min(window, window_bytes_max);
  credit_.fill(static_cast<int64_t>(window_));
}

void outbox::add_signal(const frame_header& header, std::optional<message_frame> body) {
  signals_.push_back({header, std::move(body)});
}

void outbox::add(encoded_parcel message) {
  bytes_ += charge_of(message.header);
  queue(message.header.lane).push_back(std::move(message));
}

void outbox::add_credit(lane of, uint64_t bytes) {
  auto& credit = credit_[static_cast<size_t>(of)];
  auto most = static_cast<int64_t>(window_);
  credit = bytes > window_ ? most : std::min(most, credit + static_cast<int64_t>(bytes));
}

bool outbox::is_empty() const {
  return signals_.empty()
         && std::ranges::all_of(queues_, [](const auto& one) { return one.empty(); });
}

bool outbox::is_starved() const {
  for (auto of : {lane::control, lane::bulk})
    if (!queues_[static_cast<size_t>(of)].empty() && !may_begin(of) && !begun_) return true;
  return false;
}

// Arrays are worth the trouble; a token is sent sooner than it is looked at.
void outbox::drop_recalled() {
  auto& waiting = queue(lane::bulk);
  while (!waiting.empty() && waiting.front().body && waiting.front().body->is_recalled()) {
    bytes_ -= begun_ ? waiting.front().header.body_bytes - begun_->sent
                     : charge_of(waiting.front().header);
    if (begun_) add_signal({.kind = frame_kind::recalled, .lane = lane::bulk});
    begun_.reset();
    recalled_.push_back(waiting.front().header);
    waiting.pop_front();
  }
}

bool outbox::fill(write_batch& batch) {
  drop_recalled(); // of what is under way, the peer is told before anything else
  while (!signals_.empty() && !batch.is_full()) {
    auto& first = signals_.front();
    batch.add_header(first.header);
    if (first.body) {
      for (auto piece : first.body->pieces())
        batch.add_piece(piece);
      batch.bodies.push_back(std::move(*first.body));
    }
    signals_.pop_front();
  }
  while (!queue(lane::control).empty() && may_begin(lane::control) && !batch.is_full()
         && batch.bytes < control_bytes_max)
    take_whole(batch, lane::control);
  for (auto end = batch.bytes + bulk_bytes_max; batch.bytes < end && !batch.is_full();) {
    if (!begun_) drop_recalled();
    if (queue(lane::bulk).empty() || !(begun_ || may_begin(lane::bulk))) break;
    take_part(batch);
    if (begun_) break; // its next part goes after what has come meanwhile
  }
  return batch.bytes > 0;
}

void outbox::spend(const encoded_parcel& message) {
  credit_[static_cast<size_t>(message.header.lane)]
    -= static_cast<int64_t>(charge_of(message.header));
}

void outbox::take_whole(write_batch& batch, lane from) {
  auto message = std::move(queue(from).front());
  queue(from).pop_front();
  spend(message);
  bytes_ -= charge_of(message.header);
  batch.add_header(message.header);
  if (!message.body) return;
  for (auto piece : message.body->pieces())
    batch.add_piece(piece);
  batch.bodies.push_back(std::move(*message.body));
}

void outbox::take_part(write_batch& batch) {
  auto& message = queue(lane::bulk).front();
  auto total = message.header.body_bytes;
  if (!begun_ && total <= part_bytes_max_) return take_whole(batch, lane::bulk);
  auto header = message.header;
  if (begun_) {
    header = {.kind = frame_kind::part, .lane = lane::bulk};
  } else {
    begun_ = progress{};
    spend(message);
    bytes_ -= message_overhead_bytes;
    header.kind = frame_kind::opening;
    header.total_bytes = total;
  }
  header.body_bytes = std::min(part_bytes_max_, total - begun_->sent);
  batch.add_header(header);
  for (auto left = header.body_bytes; left > 0;) {
    auto piece = message.body->pieces()[begun_->piece].subspan(begun_->offset);
    auto taken = std::min<uint64_t>(left, piece.size());
    batch.add_piece(piece.first(taken));
    left -= taken;
    begun_->offset += taken;
    if (taken == piece.size()) {
      ++begun_->piece;
      begun_->offset = 0;
    }
  }
  batch.bodies.push_back(*message.body); // a share: the message may be at its end
  begun_->sent += header.body_bytes;
  bytes_ -= header.body_bytes;
  if (begun_->sent < total) return;
  begun_.reset();
  queue(lane::bulk).pop_front();
}

} // namespace troupe
