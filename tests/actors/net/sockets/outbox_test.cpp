// SPDX-License-Identifier: Apache-2.0
// Goal: tokens go ahead of gradients, no peer is sent more than it can keep, and what one side cuts
// the other puts together. Method: an outbox and an inbox, and bytes from hand to hand.
#include "actors/net/sockets/inbox.hpp"
#include "actors/net/sockets/outbox.hpp"
#include "kernels/tensor/change.hpp"
#include "messages/collective_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"

#include <cstring>

namespace outbox_test {

using namespace troupe;

namespace {

constexpr uint64_t part_bytes = 256;
constexpr uint64_t window = 4096;
constexpr frame_limits limits{
  .message_bytes_max = 1 << 20, .part_bytes_max = part_bytes, .hello_bytes_max = 256};

encoded_parcel token(uint64_t step) {
  return *encode_parcel({.content = caf::make_message(make_token(step))});
}

// A gradient of so many elements of 4 bytes.
msg<wire::PushGradient> push_of(int64_t elements) {
  auto values = make_array<float>({elements}, std::vector<float>(static_cast<size_t>(elements), 1));
  return make_push_gradient({}, values);
}

encoded_parcel parcel_of(const msg<wire::PushGradient>& push) {
  return *encode_parcel({.content = caf::make_message(push)});
}

encoded_parcel gradient_parcel(int64_t elements) {
  return parcel_of(push_of(elements));
}

/// An array that an actor expects to be sent, as the result in a part of a collective.
struct expected_array {
  explicit expected_array(int64_t elements) : memory(zeros({elements})) {
    places->expect(actor, {.call = 4, .rank = 1},
                   {std::as_writable_bytes(memory.mutable_values<float>()), memory.owner()});
  }

  // The message that brings it, full of 1.5.
  static encoded_parcel message(int64_t elements) {
    auto part
      = make_collective_part({.name = "a"}, {.call = 4,
                                             .rank = 1,
                                             .stage = collective_stage::result,
                                             .values = {filled(dtype::f32, {elements}, 1.5)}});
    return *encode_parcel({.to = {{}, actor}, .content = caf::make_message(part)});
  }

  static constexpr uint64_t actor = 9;
  tensor memory;
  std::shared_ptr<array_places> places = std::make_shared<array_places>();
};

/// An inbox, and the frames that have come out of it.
struct receiver {
  explicit receiver(uint64_t takes = window, frame_limits most = limits,
                    std::shared_ptr<array_places> arrays = nullptr)
    : retained{std::make_shared<retained_bytes>(nullptr, 1)}, in{most, takes, retained,
                                                                 std::move(arrays)} {}

  // `step` bytes at a time, as a socket may give them.
  expected<void> feed(std::span<const std::byte> bytes, size_t step) {
    while (!bytes.empty()) {
      auto space = in.space();
      auto count = std::min({space.size(), bytes.size(), step});
      std::memcpy(space.data(), bytes.data(), count);
      bytes = bytes.subspan(count);
      auto taken = in.take(count, [this](received_frame frame) {
        frames.push_back(std::move(frame));
        return expected<void>{};
      });
      if (!taken) return taken;
    }
    return {};
  }

  std::shared_ptr<retained_bytes> retained;
  inbox in;
  std::vector<received_frame> frames;
};

std::vector<std::byte> bytes_of(const write_batch& batch) {
  std::vector<std::byte> bytes;
  for (auto buffer : batch.buffers) {
    const auto* begin = static_cast<const std::byte*>(buffer.data());
    bytes.insert(bytes.end(), begin, begin + buffer.size());
  }
  return bytes;
}

// All that goes out now.
std::vector<std::byte> drain(outbox& out) {
  std::vector<std::byte> bytes;
  for (write_batch batch; out.fill(batch); batch.clear()) {
    auto more = bytes_of(batch);
    CHECK(more.size() == batch.bytes);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

} // namespace

TEST_SUITE("actors/net/sockets/outbox") {
  TEST_CASE("a long message is cut, and whole again at the other side, however bytes come") {
    auto sent = gradient_parcel(1000);
    auto body = flatten(*sent.body);
    outbox out{part_bytes, 1 << 20};
    out.add(sent);
    auto bytes = drain(out);
    CHECK(out.is_empty());
    CHECK(out.bytes() == 0);
    for (size_t step : {size_t{1}, size_t{7}, size_t{57}, size_t{300}, bytes.size()}) {
      receiver from;
      REQUIRE(from.feed(bytes, step));
      REQUIRE(from.frames.size() == 1);
      CHECK(from.frames[0].header == sent.header);
      CHECK(std::ranges::equal(from.frames[0].body.frame, body));
    }
  }

  TEST_CASE("a token overtakes a gradient that is under way") {
    outbox out{part_bytes, 1 << 20};
    out.add(gradient_parcel(1000));
    write_batch first;
    REQUIRE(out.fill(first));
    out.add(token(5));
    auto bytes = bytes_of(first);
    auto rest = drain(out);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    receiver from;
    REQUIRE(from.feed(bytes, 100));
    REQUIRE(from.frames.size() == 2);
    CHECK(from.frames[0].header.lane == lane::control);
    CHECK(from.frames[1].header.lane == lane::bulk);
  }

  TEST_CASE("a signal goes first, and costs no credit") {
    outbox out{part_bytes, 1 << 20};
    out.set_window(0);
    out.add(token(5));
    out.add_signal({.kind = frame_kind::heartbeat});
    receiver from;
    REQUIRE(from.feed(drain(out), 100));
    REQUIRE(from.frames.size() == 1);
    CHECK(from.frames[0].header.kind == frame_kind::heartbeat);
    CHECK(out.is_starved());
  }

  TEST_CASE("a window without a limit is one") {
    outbox out{part_bytes, 1 << 20};
    out.set_window(UINT64_MAX);
    out.add(token(5));
    receiver from;
    REQUIRE(from.feed(drain(out), 100));
    CHECK(from.frames.size() == 1);
  }

  TEST_CASE("without credit a message waits, and tokens do not wait with it") {
    outbox out{part_bytes, 1 << 20};
    out.set_window(1000);
    out.add(gradient_parcel(500)); // the first may be larger than what is left
    out.add(gradient_parcel(500));
    out.add(token(5));
    receiver from;
    REQUIRE(from.feed(drain(out), 100));
    CHECK(from.frames.size() == 2);
    CHECK(out.is_starved());
    CHECK(out.bytes() > 2000);
    out.add_credit(lane::bulk, 5000); // never more than the window
    CHECK_FALSE(out.is_starved());
    REQUIRE(from.feed(drain(out), 100));
    CHECK(from.frames.size() == 3);
    CHECK(out.is_empty());
  }

  TEST_CASE("messages without a body cost credit too, and so do tokens more than their bytes") {
    outbox out{part_bytes, 1 << 20};
    out.set_window(10 * message_overhead_bytes);
    auto nothing = *encode_parcel({.content = caf::message{}});
    REQUIRE_FALSE(nothing.body);
    for (int i = 0; i < 20; ++i)
      out.add(nothing);
    CHECK(out.bytes() == 20 * message_overhead_bytes);
    receiver from{1 << 20};
    REQUIRE(from.feed(drain(out), 100));
    CHECK(from.frames.size() == 10);
    CHECK(out.is_starved());
    CHECK(from.retained->bytes(lane::control) == 10 * message_overhead_bytes);
    from.frames.clear();
    CHECK(from.retained->bytes(lane::control) == 0);
    out.add_credit(lane::control, 10 * message_overhead_bytes);
    REQUIRE(from.feed(drain(out), 100));
    CHECK(from.frames.size() == 10);
    CHECK(out.bytes() == 0);
  }

  TEST_CASE("small gradients go out many at a time, of a large one a part") {
    outbox out{part_bytes, 1 << 20};
    for (int i = 0; i < 40; ++i)
      out.add(gradient_parcel(20));
    out.add(gradient_parcel(1000));
    write_batch batch;
    REQUIRE(out.fill(batch));
    CHECK(batch.frames == write_batch::frames_max);
    batch.clear();
    REQUIRE(out.fill(batch));
    CHECK(batch.frames == 9);
    CHECK_FALSE(out.is_empty());
    batch.clear();
    REQUIRE(out.fill(batch));
    CHECK(batch.frames == 1);
    CHECK(batch.bytes == frame_header_bytes + part_bytes);
  }

  TEST_CASE("a gradient that is recalled before it has begun is not sent") {
    outbox out{part_bytes, 1 << 20};
    auto first = push_of(100);
    auto second = push_of(1000);
    auto third = push_of(200);
    for (const auto& push : {first, second, third})
      out.add(parcel_of(push));
    second.recall();
    receiver from;
    REQUIRE(from.feed(drain(out), 100));
    REQUIRE(from.frames.size() == 2);
    CHECK(from.frames[0].header == parcel_of(first).header);
    CHECK(from.frames[1].header == parcel_of(third).header);
    CHECK(out.take_recalled() == std::vector{parcel_of(second).header});
    CHECK(out.take_recalled().empty());
    CHECK(out.bytes() == 0);
  }

  TEST_CASE("a gradient that is recalled under way is forgotten by both sides") {
    outbox out{part_bytes, 1 << 20};
    auto push = push_of(1000);
    out.add(parcel_of(push));
    out.add(parcel_of(push_of(500)));
    write_batch begun;
    REQUIRE(out.fill(begun));
    push.recall();
    auto bytes = bytes_of(begun);
    auto rest = drain(out);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    for (size_t step : {size_t{1}, size_t{57}, bytes.size()}) {
      receiver from;
      REQUIRE(from.feed(bytes, step));
      REQUIRE(from.frames.size() == 1);
      CHECK(from.frames[0].header.body_bytes == parcel_of(push_of(500)).header.body_bytes);
      CHECK(from.retained->bytes(lane::bulk) == charge_of(from.frames[0].header));
    }
    CHECK(out.take_recalled() == std::vector{parcel_of(push).header});
    CHECK(out.bytes() == 0);
  }

  TEST_CASE("what has left cannot be recalled") {
    outbox out{part_bytes, 1 << 20};
    auto push = push_of(1000);
    out.add(parcel_of(push));
    receiver from;
    auto bytes = drain(out);
    push.recall();
    REQUIRE(from.feed(bytes, 100));
    CHECK(from.frames.size() == 1);
    CHECK(drain(out).empty());
    CHECK(out.take_recalled().empty());
  }

  TEST_CASE("control messages keep their order, and so do gradients") {
    outbox out{part_bytes, 1 << 20};
    for (uint64_t i = 0; i < 100; ++i)
      out.add(token(i));
    for (int64_t i = 1; i <= 3; ++i)
      out.add(gradient_parcel(i * 100));
    receiver from{1 << 20};
    REQUIRE(from.feed(drain(out), 1000));
    uint64_t next = 0;
    uint64_t last_bytes = 0;
    for (const auto& frame : from.frames) {
      if (frame.header.lane == lane::bulk) {
        CHECK(frame.header.body_bytes > last_bytes);
        last_bytes = frame.header.body_bytes;
      } else {
        CHECK(decode<wire::Token>(frame.body)->reader().getStep() == next++);
      }
    }
    CHECK(next == 100);
    CHECK(from.frames.size() == 103);
  }
}

TEST_SUITE("actors/net/inbox") {
  TEST_CASE("memory counts as held until the last holder lets go") {
    outbox out{part_bytes, 1 << 20};
    out.add(gradient_parcel(1000));
    receiver from;
    REQUIRE(from.feed(drain(out), 100));
    CHECK(from.retained->bytes(lane::bulk) == charge_of(from.frames[0].header));
    auto share = from.frames[0].body.owner;
    from.frames.clear();
    CHECK(from.retained->bytes(lane::bulk) > 4000);
    share.reset();
    CHECK(from.retained->bytes(lane::bulk) == 0);
  }

  TEST_CASE("an array that is expected is read to its place, however bytes come") {
    constexpr int64_t count = 20'000;
    auto result = expected_array::message(count);
    auto whole = flatten(*result.body);
    for (uint64_t part_bytes_max : {uint64_t{70'000}, uint64_t{1} << 20}) {
      outbox out{part_bytes_max, 1 << 20};
      for (const auto& message : {token(1), result, token(2), result})
        out.add(message);
      auto bytes = drain(out);
      for (size_t step : {size_t{1}, size_t{57}, size_t{1000}, size_t{65'537}, bytes.size()}) {
        expected_array array{count};
        receiver from{1 << 20, {1 << 20, part_bytes_max, 256}, array.places};
        REQUIRE(from.feed(bytes, step));
        REQUIRE(from.frames.size() == 4);
        const auto& placed = from.frames[2].body; // tokens go first
        CHECK(placed.array.data() == array.memory.data());
        CHECK(array.memory.values<float>()[count - 1] == 1.5F);
        CHECK(from.frames[2].header == from.frames[3].header);
        CHECK(flatten(*frame(*decode<wire::CollectivePart>(placed))) == whole);
        CHECK(std::ranges::equal(from.frames[3].body.frame, whole));
        CHECK(from.frames[3].body.array.empty());
        CHECK(from.retained->bytes(lane::bulk) == 2 * charge_of(from.frames[2].header));
      }
    }
  }

  TEST_CASE("a message that is shorter than its array is malformed") {
    constexpr int64_t count = 40'000;
    auto result = expected_array::message(count);
    auto body = flatten(*result.body);
    result.header.body_bytes = array_places::bytes_min;
    auto header = write_frame_header(result.header);
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    expected_array array{count};
    receiver from{1 << 20, {1 << 20, 1 << 20, 256}, array.places};
    auto refused = from.feed(bytes, bytes.size());
    REQUIRE_FALSE(refused);
    CHECK(refused.error()
          == error{errc::malformed, "frame header: a message that is shorter than its array"});
  }

  TEST_CASE("a sender that goes beyond its credit is refused") {
    outbox out{part_bytes, 1 << 20};
    out.add(gradient_parcel(1000));
    out.add(gradient_parcel(1000));
    receiver from{1000};
    auto refused = from.feed(drain(out), 100);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::limit_exceeded);
    CHECK(from.frames.size() == 1);
  }

  TEST_CASE("a sender that goes beyond its credit with messages that have no body is refused") {
    outbox out{part_bytes, 1 << 20};
    for (int i = 0; i < 4; ++i)
      out.add(*encode_parcel({.content = caf::message{}}));
    receiver from{2 * message_overhead_bytes};
    auto refused = from.feed(drain(out), 100);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::limit_exceeded);
    CHECK(from.frames.size() == 2);
  }

  TEST_CASE("a message for which there is no memory is refused") {
    constexpr uint64_t too_much = uint64_t{1} << 60;
    auto most = limits;
    most.message_bytes_max = too_much;
    receiver from{window, most};
    auto opening = write_frame_header(
      {.kind = frame_kind::opening, .lane = lane::bulk, .body_bytes = 8, .total_bytes = too_much});
    auto refused = from.feed(opening, opening.size());
    REQUIRE_FALSE(refused);
    CHECK(refused.error()
          == error{errc::resource,
                   "there is no memory here for a message of 1152921504606846976 bytes"});
    CHECK(from.retained->bytes(lane::bulk) == 0);
  }

  TEST_CASE("parts that belong to nothing, or to more than there is, are malformed") {
    auto refusal = [](std::vector<frame_header> headers) {
      receiver from;
      expected<void> taken;
      for (const auto& header : headers) {
        auto block = write_frame_header(header);
        std::vector<std::byte> bytes(block.begin(), block.end());
        bytes.resize(bytes.size() + header.body_bytes);
        if (taken) taken = from.feed(bytes, 100);
      }
      return taken ? errc::none : taken.error().code;
    };
    frame_header opening{
      .kind = frame_kind::opening, .lane = lane::bulk, .body_bytes = 8, .total_bytes = 24};
    frame_header part{.kind = frame_kind::part, .lane = lane::bulk, .body_bytes = 8};
    auto long_part = part;
    long_part.body_bytes = 24;
    auto empty_part = part;
    empty_part.body_bytes = 0;
    CHECK(refusal({opening, part, part}) == errc::none);
    CHECK(refusal({part}) == errc::malformed);
    CHECK(refusal({opening, opening}) == errc::malformed);
    CHECK(refusal({opening, long_part}) == errc::malformed);
    CHECK(refusal({opening, empty_part}) == errc::malformed);
    CHECK(refusal({opening, part, part, part}) == errc::malformed);
    frame_header recalled{.kind = frame_kind::recalled, .lane = lane::bulk};
    CHECK(refusal({opening, part, recalled, opening}) == errc::none);
    CHECK(refusal({recalled}) == errc::malformed);
    CHECK(refusal({opening, part, part, recalled}) == errc::malformed);
  }
}

} // namespace outbox_test
