// SPDX-License-Identifier: Apache-2.0
// Goal: what an actor is told arrives at another node as it was said.
#include "actors/net/parcel_codec.hpp"
#include "messages/collective_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <caf/unit.hpp>

namespace parcel_codec_test {

using namespace troupe;

namespace {

constexpr node_address here{1, 5};

// There and back, over nothing but bytes.
expected<parcel> send(const parcel& what) {
  return encode_parcel(what).and_then([](const encoded_parcel& encoded) {
    received_bytes body;
    if (encoded.body) {
      auto bytes = std::make_shared<std::vector<std::byte>>(flatten(*encoded.body));
      body = {*bytes, bytes};
    }
    CHECK(encoded.header.body_bytes == body.frame.size());
    return decode_parcel(here, encoded.header, body);
  });
}

parcel with(caf::message content) {
  return {.to = {here, 7}, .from = {{0, 3}, 9}, .id = 11, .content = std::move(content)};
}

caf::error send_error(caf::error reason) {
  return send(with(caf::make_message(std::move(reason))))->content.get_as<caf::error>(0);
}

} // namespace

TEST_SUITE("actors/net/parcel_codec") {
  TEST_CASE("a message arrives with its addresses and its number") {
    auto come = send(with(caf::make_message(make_token(8))));
    REQUIRE(come);
    CHECK(come->to == actor_address{here, 7});
    CHECK(come->from == actor_address{{0, 3}, 9});
    CHECK(come->id == 11);
    REQUIRE(come->content.match_elements<msg<wire::Token>>());
    CHECK(come->content.get_as<msg<wire::Token>>(0).reader().getStep() == 8);
  }

  TEST_CASE("messages with arrays go in the lane of bulk, others do not") {
    auto lane_of
      = [](caf::message content) { return encode_parcel(with(std::move(content)))->header.lane; };
    CHECK(lane_of(caf::make_message(make_token(8))) == lane::control);
    CHECK(lane_of(caf::make_message(make_push_gradient({}, {}))) == lane::bulk);
    CHECK(lane_of(caf::make_message(make_collective_part({}, {}))) == lane::bulk);
    CHECK(lane_of(caf::make_message(make_push_reply(verdict::accepted, 0, 0))) == lane::control);
  }

  TEST_CASE("an error of ours keeps its code and its text") {
    auto reason = from_caf(send_error(to_caf({errc::stalled, "nobody is left"})));
    CHECK(reason == error{errc::stalled, "nobody is left"});
  }

  TEST_CASE("CAF's own errors stay what they are where somebody looks for them") {
    CHECK(send_error(caf::sec::request_receiver_down) == caf::sec::request_receiver_down);
    CHECK(send_error(caf::exit_reason::kill) == caf::exit_reason::kill);
    CHECK(send_error(caf::exit_reason::user_shutdown) == caf::exit_reason::user_shutdown);
    CHECK(from_caf(send_error(caf::sec::unexpected_message)).code == errc::resource);
  }

  TEST_CASE("exit messages and the end of an actor arrive with their reasons") {
    auto exit = send(with(caf::make_message(caf::exit_msg{{}, caf::exit_reason::kill})));
    REQUIRE(exit);
    REQUIRE(exit->content.match_elements<caf::exit_msg>());
    CHECK(exit->content.get_as<caf::exit_msg>(0).reason == caf::exit_reason::kill);
    parcel end{.kind = parcel::content_kind::down,
               .from = {{0, 3}, 9},
               .content = caf::make_message(caf::error{})};
    auto down = send(end);
    REQUIRE(down);
    CHECK(down->kind == parcel::content_kind::down);
    CHECK_FALSE(down->content.get_as<caf::error>(0));
  }

  TEST_CASE("questions for names arrive, and their answers") {
    parcel question{.kind = parcel::content_kind::find,
                    .id = 4,
                    .content = caf::make_message(std::string{"token queue"})};
    auto asked = send(question);
    REQUIRE(asked);
    CHECK(asked->kind == parcel::content_kind::find);
    CHECK(asked->content.get_as<std::string>(0) == "token queue");
    auto found = send({.kind = parcel::content_kind::found, .from = {{0, 3}, 9}, .id = 4});
    REQUIRE(found);
    CHECK(found->kind == parcel::content_kind::found);
    CHECK(found->from.actor == 9);
  }

  TEST_CASE("an answer without a value arrives") {
    CHECK(send(with(caf::message{}))->content.empty());
    CHECK(send(with(caf::make_message(caf::unit)))->content.empty());
  }

  TEST_CASE("what is no message of the schemas is refused, and named") {
    auto refused = encode_parcel(with(caf::make_message(42)));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::unimplemented);
    CHECK(refused.error().message.find("42") != std::string::npos);
  }

  TEST_CASE("a body that does not belong to its content is malformed") {
    auto token = flatten(*frame(make_token(1)));
    auto bytes = std::make_shared<std::vector<std::byte>>(token);
    for (auto content : {content_code::none, content_code::error, content_code::exit,
                         content_code::down, content_code::find, content_code::found}) {
      frame_header header{
        .kind = frame_kind::parcel, .content = content, .body_bytes = bytes->size()};
      CHECK_FALSE(decode_parcel(here, header, {*bytes, bytes}));
    }
  }
}

} // namespace parcel_codec_test
