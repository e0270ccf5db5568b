// SPDX-License-Identifier: Apache-2.0
// Frames refer to the memory of their message, and any Cap'n Proto tool can read them.
#include "messages/checks/limits.hpp"
#include "messages/frame.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"
#include "tests/scratch_folder.hpp"

#include <cstdio>
#include <cstdlib>

namespace frame_test {

using namespace troupe;

namespace {

/// The piece of `frame` that begins at `data`, or an empty span.
std::span<const std::byte> piece_at(const message_frame& frame, const void* data) {
  for (auto piece : frame.pieces())
    if (piece.data() == data) return piece;
  return {};
}

/// The output of `capnp decode` for the frame in `file`; the build's environment says where the
/// tool and the schema are.
std::string decode_with_tool(const std::filesystem::path& file) {
  auto command = std::string(std::getenv("TROUPE_CAPNP")) + " decode --short "
                 + std::getenv("TROUPE_SCHEMA_FOLDER") + "/envelope.capnp Envelope < "
                 + file.string();
  auto* output = popen(command.c_str(), "r");
  REQUIRE(output != nullptr);
  std::string text;
  for (int letter = std::fgetc(output); letter != EOF; letter = std::fgetc(output))
    text += static_cast<char>(letter);
  CHECK(pclose(output) == 0);
  return text;
}

} // namespace

TEST_SUITE("messages/frame") {
  TEST_CASE("a frame has the tensor where the sender holds it") {
    auto value = make_array<double>({1000}, std::vector<double>(1000, 0.5));
    auto framed = frame(make_variable_snapshot(1, value));
    REQUIRE(framed);
    CHECK(piece_at(*framed, value.data()).size() == 8000);
  }

  TEST_CASE("a frame neither reads nor sends what lies behind a tensor") {
    auto value = make_array<float>({20}, counting_to(20)).slice(0, 19);
    auto framed = frame(make_variable_snapshot(1, value));
    REQUIRE(framed);
    CHECK(piece_at(*framed, value.data()).size() == 76);
    CHECK(framed->pieces().back().size() == 4);
    CHECK(framed->pieces().back()[0] == std::byte{0});
    CHECK(framed->bytes() % 8 == 0);
  }

  TEST_CASE("a frame keeps its message's memory alive") {
    auto value = make_array<float>({20}, counting_to(20));
    std::weak_ptr<const void> memory = value.owner();
    auto framed = frame(make_variable_snapshot(1, std::move(value)));
    value = tensor{};
    CHECK(!memory.expired());
    framed = fail(errc::none, "");
    CHECK(memory.expired());
  }

  TEST_CASE("a small message is two pieces: segment table and segment") {
    auto framed = frame(make_token(8));
    REQUIRE(framed);
    CHECK(framed->pieces().size() == 2);
    CHECK(framed->bytes() == 40);
  }

  TEST_CASE("a received message goes on as it came") {
    auto bytes = receive(flatten(frame(make_push_gradient({}, make_slices())).value()));
    auto received = bytes.frame;
    auto push = decode<wire::PushGradient>(std::move(bytes));
    REQUIRE(push);
    auto framed = frame(*push);
    REQUIRE(framed);
    REQUIRE(framed->pieces().size() == 1);
    CHECK(framed->pieces()[0].data() == received.data());
    CHECK(framed->bytes() == received.size());
  }

  TEST_CASE("an empty message has no frame") {
    auto framed = frame(msg<wire::Token>());
    REQUIRE(!framed);
    CHECK(framed.error().code == errc::invalid_argument);
  }

  TEST_CASE("a message with an array on a device has no frame") {
    alignas(8) float element = 0; // small enough to be copied, if it were the host's
    auto there = tensor::wrap_on({device_kind::cuda, 1}, &element, dtype::f32, {1}, nullptr);
    auto refused = frame(make_push_gradient({}, gradient{there}));
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().message.find("to_host") != std::string::npos);
    auto empty = tensor::wrap_on({device_kind::cuda, 1}, nullptr, dtype::f32, {0}, nullptr);
    CHECK(!frame(make_push_gradient({}, gradient{empty})));
  }

  TEST_CASE("an update of more tensors than a frame has segments is copied into few") {
    for (size_t count : {limits::segments_max - 1, limits::segments_max, size_t{2000}}) {
      CAPTURE(count);
      // 21 elements: half of the last word of each is not its own.
      auto push = make_push_gradient({}, make_array<float>({21}, counting_to(21)));
      auto update = make_apply_update(7, 0, std::vector(count, push), true);
      auto framed = frame(update);
      REQUIRE(framed);
      CHECK(framed->pieces().size() < 2 * limits::segments_max + 2);
      auto received = decode_any(receive(flatten(*framed)));
      REQUIRE(received);
      CHECK(print(*received) == print(any_msg{update.owner()}));
    }
  }

  TEST_CASE("the capnp tool reads every example") {
    if (std::getenv("TROUPE_CAPNP") == nullptr) return;
    test::scratch_folder folder;
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      auto* bytes = reinterpret_cast<const char*>(example.frame.data());
      test::write(folder / "frame", {bytes, example.frame.size()});
      auto text = decode_with_tool(folder / "frame");
      CHECK(text.find("protocol = 1") != std::string::npos);
      CHECK(text.find(std::string(example.name) + " = ") != std::string::npos);
    }
  }
}

} // namespace frame_test
