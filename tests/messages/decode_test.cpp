// SPDX-License-Identifier: Apache-2.0
// Bytes of a peer are either a message that reads without a fault or an error: truncated, flipped,
// oversized, amplified, nested and foreign frames are tried.
#include "messages/checks/limits.hpp"
#include "messages/collective_message.hpp"
#include "messages/decode.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/hostile_frame.hpp"

namespace decode_test {

using namespace troupe;

namespace {

/// A refusal has a code that says what the peer did, and a text.
void check_is_refusal(const error& refusal) {
  CHECK(!refusal.message.empty());
  auto known = refusal.code == errc::malformed || refusal.code == errc::limit_exceeded
               || refusal.code == errc::unimplemented;
  CHECK(known);
}

/// Either the frame is refused or everything in it can be read; its beginning is looked at before.
void check_decodes_or_refuses(std::span<const std::byte> frame) {
  auto received = receive(frame);
  CHECK_NOTHROW(static_cast<void>(read_part_beginning(received.frame)));
  auto message = decode_any(received);
  if (!message) return check_is_refusal(message.error());
  CHECK_NOTHROW(static_cast<void>(print(*message)));
}

/// An update with gradients that all point to one dense tensor, which has one part of `part_words`
/// words.
std::vector<uint64_t> amplified_update(uint32_t gradients, uint32_t part_words) {
  std::vector<uint64_t> words{
    struct_pointer(0, 1, 1),
    envelope_data(wire::Envelope::APPLY_UPDATE),
    struct_pointer(0, 0, 1), // The update, without numbers.
    list_pointer(0, 7, 2 * gradients),
    struct_pointer(int32_t(gradients), 1, 1), // How many gradients follow, and of which size.
  };
  auto tensor = int32_t(words.size() + 2 * gradients);
  for (uint32_t i = 0; i < gradients; ++i) {
    words.push_back(wire::Gradient::DENSE);
    words.push_back(struct_pointer(tensor - int32_t(words.size()) - 1, 1, 2));
  }
  words.push_back(static_cast<uint64_t>(wire::DType::F32));
  words.push_back(list_pointer(1, 5, 1)); // The shape: one word, behind the next pointer.
  words.push_back(list_pointer(1, 6, 1)); // The parts: one pointer, behind the shape.
  words.push_back(2 * part_words);
  words.push_back(list_pointer(0, 2, 8 * part_words));
  words.resize(words.size() + part_words);
  return words;
}

} // namespace

TEST_SUITE("messages/decode") {
  TEST_CASE("every truncation of every example is refused") {
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      for (size_t bytes = 0; bytes < example.frame.size(); ++bytes) {
        auto message = decode_any(receive(std::span(example.frame).first(bytes)));
        CHECK(refusal(message) == errc::malformed);
      }
    }
  }

  TEST_CASE("every truncation whose segment table agrees decodes or is refused") {
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      if (example.frame[0] != std::byte{0}) continue; // Several segments.
      for (size_t words = 1; words * 8 < example.frame.size(); ++words) {
        auto frame = std::vector(example.frame.begin(), example.frame.begin() + words * 8);
        frame[4] = static_cast<std::byte>(words - 1);
        check_decodes_or_refuses(frame);
      }
    }
  }

  TEST_CASE("every flipped bit of every example decodes or is refused") {
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      auto frame = example.frame;
      for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
        auto mask = static_cast<std::byte>(1 << bit % 8);
        frame[bit / 8] ^= mask;
        check_decodes_or_refuses(frame);
        frame[bit / 8] ^= mask;
      }
    }
  }

  TEST_CASE("bytes behind the message are refused") {
    auto frame = message_examples()[0].frame;
    frame.resize(frame.size() + 8);
    CHECK(refusal(decode_any(receive(frame))) == errc::malformed);
  }

  TEST_CASE("a frame that begins between two words is read all the same") {
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      auto aligned = decode_any(receive(example.frame));
      auto unaligned = decode_any(receive(example.frame, 3));
      REQUIRE(unaligned);
      CHECK(print(*unaligned) == print(*aligned));
    }
  }

  TEST_CASE("a receiver that waits for another message is told which one came") {
    auto token = decode<wire::Token>(receive(flatten(frame(make_set_step(1)).value())));
    REQUIRE(refusal(token) == errc::type_mismatch);
    CHECK(token.error().message == "message is a setStep, wanted is a token");
  }

  TEST_CASE("a segment table that promises too much is refused before anything is read") {
    auto many = std::vector<uint64_t>(400, UINT64_MAX);
    many[0] = limits::segments_max; // One more than allowed, because the table says one less.
    CHECK(refusal(decode_any(receive(std::as_bytes(std::span(many))))) == errc::limit_exceeded);
    many[0] = limits::segments_max - 1; // Each of 32 GiB.
    CHECK(refusal(decode_any(receive(std::as_bytes(std::span(many))))) == errc::malformed);
  }

  TEST_CASE("a frame without a root is refused") {
    CHECK(refusal(decode_any(raw_frame({}))) == errc::malformed);
  }

  TEST_CASE("another protocol and an unknown body are told apart from nonsense") {
    auto future = hostile_frame([](auto envelope) {
      envelope.setProtocol(wire::PROTOCOL_VERSION + 1);
      envelope.initToken();
    });
    CHECK(refusal(decode_any(future)) == errc::unimplemented);
    CHECK(refusal(decode_any(hostile_frame([](auto envelope) { envelope.setProtocol(0); })))
          == errc::unimplemented);
    uint64_t unknown[]
      = {struct_pointer(0, 1, 1), envelope_data(static_cast<wire::Envelope::Which>(999)), 0};
    CHECK(refusal(decode_any(raw_frame(unknown))) == errc::unimplemented);
  }

  TEST_CASE("a body that is absent has the defaults of its fields") {
    uint64_t words[] = {struct_pointer(0, 1, 0), envelope_data(wire::Envelope::TOKEN)};
    auto token = decode<wire::Token>(raw_frame(words));
    REQUIRE(token);
    CHECK(token->reader().getStep() == 0);
  }

  TEST_CASE("fields that a newer peer adds are passed over") {
    uint64_t words[] = {struct_pointer(0, 2, 2),
                        envelope_data(wire::Envelope::TOKEN),
                        77,
                        struct_pointer(1, 2, 0),
                        struct_pointer(1000, 9, 9),
                        5,
                        77};
    auto token = decode<wire::Token>(raw_frame(words));
    REQUIRE(token);
    CHECK(token->reader().getStep() == 5);
  }

  TEST_CASE("texts and lists beyond their limits are refused") {
    auto with_reason = [](size_t bytes) {
      return hostile_frame([&](auto envelope) {
        envelope.initFarewell().initReason(static_cast<capnp::uint>(bytes));
      });
    };
    CHECK(refusal(decode_any(with_reason(limits::text_bytes_max))) == errc::none);
    CHECK(refusal(decode_any(with_reason(limits::text_bytes_max + 1))) == errc::limit_exceeded);
    auto with_waiting = [](size_t count) {
      return hostile_frame([&](auto envelope) {
        envelope.initQueueStatus().initWaiting(static_cast<capnp::uint>(count));
      });
    };
    CHECK(refusal(decode_any(with_waiting(limits::list_elements_max))) == errc::none);
    CHECK(refusal(decode_any(with_waiting(limits::list_elements_max + 1))) == errc::limit_exceeded);
  }

  TEST_CASE("a list of structs without size cannot pretend to be long") {
    uint64_t words[]
      = {struct_pointer(0, 1, 1), envelope_data(wire::Envelope::APPLY_UPDATE),
         struct_pointer(0, 0, 1), list_pointer(0, 7, 0), struct_pointer(1'000'000, 0, 0)};
    CHECK(refusal(decode_any(raw_frame(words))) == errc::malformed);
  }

  TEST_CASE("an unknown enumerator is refused") {
    auto frame = hostile_frame(
      [](auto envelope) { envelope.initPushReply().setVerdict(static_cast<wire::Verdict>(9)); });
    auto reply = decode_any(frame);
    REQUIRE(refusal(reply) == errc::malformed);
    CHECK(reply.error().message == "no Verdict has the value 9");
  }

  TEST_CASE("pointers that share a large target are refused") {
    CHECK(refusal(decode_any(raw_frame(amplified_update(1, 1000)))) == errc::none);
    CHECK(refusal(decode_any(raw_frame(amplified_update(100, 1000)))) == errc::malformed);
  }

  TEST_CASE("a message that contains itself is refused") {
    // The gradients of the update are the update's own envelope, again and again.
    uint64_t words[] = {struct_pointer(0, 1, 1), envelope_data(wire::Envelope::APPLY_UPDATE),
                        struct_pointer(-2, 0, 1)};
    check_decodes_or_refuses(raw_frame(words).frame);
  }
}

} // namespace decode_test
