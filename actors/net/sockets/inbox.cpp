// SPDX-License-Identifier: Apache-2.0
// Bytes into frames.
#include "actors/net/sockets/inbox.hpp"

#include "kernels/tensor/buffer.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <new>

namespace troupe {

namespace {

constexpr size_t buffer_bytes = 64 * 1024;

// A message below this is not worth a look into the pool.
constexpr uint64_t pooled_bytes_min = 4096;

// After a body of so many bytes another one like it is expected.
constexpr uint64_t long_body_bytes = buffer_bytes;

// So much of a message says where the array behind it belongs, unless its texts are long.
constexpr uint64_t beginning_bytes = 1024;

std::shared_ptr<std::byte> allocate(uint64_t bytes) {
  if (bytes >= pooled_bytes_min) return cpu_pool().allocate(bytes);
  auto words = std::make_shared_for_overwrite<uint64_t[]>(bytes / sizeof(uint64_t));
  return {words, reinterpret_cast<std::byte*>(words.get())};
}

uint64_t message_bytes(const frame_header& header) {
  return std::max(header.body_bytes, header.total_bytes);
}

bool is_long(frame_kind kind) {
  return kind == frame_kind::opening || kind == frame_kind::part;
}

} // namespace

void retained_bytes::release(lane of, uint64_t bytes) {
  held(of) -= bytes;
  auto& untold = untold_[static_cast<size_t>(of)];
  if ((untold += bytes) < quantum_ || !on_release_) return;
  if (auto told = untold.exchange(0); told > 0) on_release_(of, told);
}

std::span<std::byte> inbox::arriving::space() const {
  if (filled < memory_bytes) return {memory.get() + filled, memory_bytes - filled};
  return array.memory.subspan(filled - memory_bytes);
}

void inbox::arriving::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto room = space();
    auto count = std::min(room.size(), bytes.size());
    std::memcpy(room.data(), bytes.data(), count);
    filled += count;
    bytes = bytes.subspan(count);
  }
}

inbox::inbox(frame_limits limits, uint64_t window, std::shared_ptr<retained_bytes> retained,
             std::shared_ptr<array_places> arrays)
  : limits_(limits), window_(window), retained_(std::move(retained)), arrays_(std::move(arrays)),
    buffer_(buffer_bytes) {}

boost::asio::mutable_buffer inbox::space() {
  if (frame_) {
    auto room = frame_->space();
    return {room.data(), std::min<uint64_t>(room.size(), frame_left_)};
  }
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, available());
    end_ -= begin_;
    begin_ = 0;
  }
  // Where long bodies come, bytes behind a header are better not read to where they are copied
  // from, but for those that say where the others belong.
  auto most = message_        ? frame_header_bytes
              : expects_long_ ? frame_header_bytes + beginning_bytes
                              : buffer_.size();
  return {buffer_.data() + end_, most - end_};
}

expected<void> inbox::take(size_t bytes,
                           const std::function<expected<void>(received_frame)>& on_frame) {
  if (frame_) {
    frame_->filled += bytes;
    frame_left_ -= bytes;
    return frame_left_ > 0 ? expected<void>{} : end_frame(on_frame);
  }
  end_ += bytes;
  while (available() >= frame_header_bytes && !frame_) {
    auto begun = begin_frame(on_frame);
    if (!begun) return tl::unexpected<error>(begun.error());
    if (!*begun) break;
  }
  return {};
}

// Memory for those bytes of a message that go to no place; it is charged with all of the message.
expected<std::shared_ptr<std::byte>> inbox::memory_for(const frame_header& header, uint64_t bytes) {
  auto is_message = header.kind == frame_kind::parcel || header.kind == frame_kind::opening;
  if (is_message && retained_->bytes(header.lane) >= window_)
    return fail(errc::limit_exceeded,
                fmt::format("it sends a message of {} bytes while {} are unread, more than the {} "
                            "that it was granted",
                            message_bytes(header), retained_->bytes(header.lane), window_));
  std::shared_ptr<std::byte> memory;
  try {
    if (bytes > 0) memory = allocate(bytes);
  } catch (const std::bad_alloc&) {
    return fail(errc::resource,
                fmt::format("there is no memory here for a message of {} bytes", bytes));
  }
  if (!is_message) return memory; // the link's own, which takes no credit
  auto* begin = memory.get();
  auto charge = charge_of(header);
  retained_->take(header.lane, charge);
  return std::shared_ptr<std::byte>{begin, [memory = std::move(memory), retained = retained_,
                                            of = header.lane, charge](std::byte*) mutable {
                                      memory.reset(); // first: the release's hearer may count on it
                                      retained->release(of, charge);
                                    }};
}

// Whether the message may be one with a place, which its first bytes tell.
bool inbox::needs_beginning(const frame_header& header) const {
  auto may_be_expected = header.kind == frame_kind::parcel || header.kind == frame_kind::opening;
  return may_be_expected && !message_ && arrays_ && header.lane == lane::bulk
         && header.content == content_code::message && header.body_bytes >= array_places::bytes_min
         && arrays_->expects(header.to);
}

// Memory for the message of the header that was read last.
expected<inbox::arriving> inbox::make_room(const frame_header& header) {
  auto bytes = message_bytes(header);
  array_place array;
  if (needs_beginning(header)) {
    std::span beginning{buffer_.data() + begin_, available()};
    if (auto place = arrays_->take(header.to, beginning)) array = std::move(*place);
    if (array.memory.size() > bytes)
      return fail(errc::malformed, "frame header: a message that is shorter than its array");
  }
  auto together = bytes - array.memory.size();
  return memory_for(header, together).map([&](std::shared_ptr<std::byte> memory) {
    return arriving{header, std::move(memory), together, std::move(array)};
  });
}

// Reads the header in front, and of the body what is here already. @returns Whether that was
// possible yet.
expected<bool> inbox::begin_frame(const std::function<expected<void>(received_frame)>& on_frame) {
  auto header = read_frame_header(
    std::span<const std::byte, frame_header_bytes>{buffer_.data() + begin_, frame_header_bytes},
    limits_);
  if (!header) return tl::unexpected<error>(header.error());
  if (available() < frame_header_bytes + beginning_bytes && needs_beginning(*header)) return false;
  begin_ += frame_header_bytes;
  if (is_long(header->kind) && (header->kind == frame_kind::part) != message_.has_value())
    return fail(errc::malformed, "frame header: a part of a message that is not under way");
  if (header->kind == frame_kind::recalled) {
    if (!message_)
      return fail(errc::malformed, "frame header: a message is recalled that is not under way");
    message_.reset();
    expects_long_ = false;
    return true;
  }
  if (header->kind == frame_kind::part) {
    if (header->body_bytes == 0
        || header->body_bytes > message_->header.body_bytes - message_->filled)
      return fail(errc::malformed, "frame header: a part that is longer than its message");
    frame_ = std::move(message_);
    message_.reset();
  } else {
    auto room = make_room(*header);
    if (!room) return tl::unexpected<error>(room.error());
    frame_ = std::move(*room);
  }
  expects_long_ = header->body_bytes >= long_body_bytes;
  auto here = std::min<uint64_t>(header->body_bytes, available());
  frame_->append({buffer_.data() + begin_, here});
  begin_ += here;
  frame_left_ = header->body_bytes - here;
  if (header->kind == frame_kind::opening) {
    frame_->header.kind = frame_kind::parcel;
    frame_->header.body_bytes = header->total_bytes;
    frame_->header.total_bytes = 0;
  }
  if (frame_left_ > 0) return true;
  return end_frame(on_frame).map([] { return true; });
}

expected<void> inbox::end_frame(const std::function<expected<void>(received_frame)>& on_frame) {
  auto whole = std::move(*frame_);
  frame_.reset();
  if (whole.filled < whole.header.body_bytes) {
    message_ = std::move(whole);
    return {};
  }
  std::span<const std::byte> bytes{whole.memory.get(), whole.memory_bytes};
  return on_frame({whole.header,
                   {.frame = bytes,
                    .owner = std::move(whole.memory),
                    .array = whole.array.memory,
                    .array_owner = std::move(whole.array.owner)}});
}

} // namespace troupe
