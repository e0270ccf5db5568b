// SPDX-License-Identifier: Apache-2.0
// Random frames, from pure noise to nearly right: each either reads without a fault or is refused.
#include "messages/collective_message.hpp"
#include "messages/decode.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/hostile_frame.hpp"

namespace fuzz_test {

using namespace troupe;

namespace {

/// SplitMix64: small, and the same on every machine.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class random_stream {
public:
  explicit random_stream(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15;
    auto z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }

  size_t below(size_t limit) { return next() % limit; }

private:
  uint64_t state_;
};

struct tally {
  size_t decoded = 0;
  size_t refused = 0;
};

void try_frame(std::span<const std::byte> frame, tally& counts) {
  auto received = receive(frame);
  REQUIRE_NOTHROW(static_cast<void>(read_part_beginning(received.frame)));
  auto message = decode_any(received);
  if (message) {
    ++counts.decoded;
    REQUIRE_NOTHROW(static_cast<void>(print(*message)));
  } else {
    ++counts.refused;
    REQUIRE(!message.error().message.empty());
  }
}

/// A pointer that is likely to point somewhere: near, of any kind, with a small size.
uint64_t plausible_pointer(random_stream& random) {
  auto offset = static_cast<uint32_t>(random.below(16)) - 4;
  auto upper = random.below(8) == 0 ? random.next() >> 32 : random.next() >> 32 & 0x0003001F;
  return (offset << 2 | random.below(3)) | upper << 32;
}

} // namespace

TEST_SUITE("messages/fuzz") {
  TEST_CASE("noise with a true segment table") {
    random_stream random(1);
    tally counts;
    for (int i = 0; i < 100'000; ++i) {
      std::vector<uint64_t> words(2 + random.below(24));
      for (auto& word : words)
        word = random.below(3) == 0 ? random.next() : plausible_pointer(random);
      words[0] = uint64_t{words.size() - 1} << 32;
      words[1] = struct_pointer(0, 1, 1);
      if (words.size() > 2)
        words[2] = envelope_data(static_cast<wire::Envelope::Which>(random.below(24)));
      try_frame(std::as_bytes(std::span(words)), counts);
    }
    CHECK(counts.decoded > 1'000);
    CHECK(counts.refused > 1'000);
  }

  TEST_CASE("noise alone") {
    random_stream random(2);
    tally counts;
    for (int i = 0; i < 100'000; ++i) {
      std::vector<uint64_t> words(random.below(8));
      for (auto& word : words)
        word = random.next();
      try_frame(std::as_bytes(std::span(words)), counts);
    }
    CHECK(counts.refused == 100'000);
  }

  TEST_CASE("examples with some bytes changed") {
    random_stream random(3);
    tally counts;
    const auto& examples = message_examples();
    for (int i = 0; i < 100'000; ++i) {
      auto frame = examples[random.below(examples.size())].frame;
      for (auto changes = 1 + random.below(4); changes > 0; --changes)
        frame[random.below(frame.size())] = static_cast<std::byte>(random.next());
      try_frame(frame, counts);
    }
    CHECK(counts.decoded > 1'000);
    CHECK(counts.refused > 1'000);
  }

  TEST_CASE("examples with one pointer replaced by another") {
    random_stream random(4);
    tally counts;
    const auto& examples = message_examples();
    for (int i = 0; i < 100'000; ++i) {
      auto frame = examples[random.below(examples.size())].frame;
      auto word = 8 * (1 + random.below(frame.size() / 8 - 1));
      auto pointer = plausible_pointer(random);
      auto bytes = std::as_bytes(std::span(&pointer, 1));
      std::copy(bytes.begin(), bytes.end(), frame.begin() + static_cast<ptrdiff_t>(word));
      try_frame(frame, counts);
    }
    CHECK(counts.decoded > 1'000);
    CHECK(counts.refused > 1'000);
  }
}

} // namespace fuzz_test
