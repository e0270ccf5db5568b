// SPDX-License-Identifier: Apache-2.0
// Goal: what an actor is told arrives at another node as it was said.
#include "actors/net/parcel_codec.hpp"
#include "messages/body.hpp"
#include "messages/message_builder.hpp"
#include "messages/training_message.hpp"
#include "tests/actors/net/known_trials.hpp"
#include "tests/doctest.hpp"

#include <caf/exit_reason.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/sec.hpp>
#include <caf/system_messages.hpp>
#include <caf/unit.hpp>

#include <set>
#include <type_traits>

namespace parcel_codec_test {

using namespace troupe;

/// A type that CAF takes as a message as it is.
struct plain {
  uint32_t value = 0;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& inspector, plain& what) {
  return inspector(caf::meta::type_name("plain"), what.value);
}

namespace {

constexpr node_address here{1, 5};

// There and back, over nothing but bytes.
expected<parcel> send(const parcel& what, const network_messages* known = nullptr) {
  return encode_parcel(what, known).and_then([known](const encoded_parcel& encoded) {
    received_bytes body;
    if (encoded.body) {
      auto bytes = std::make_shared<std::vector<std::byte>>(flatten(*encoded.body));
      body = {*bytes, bytes};
    }
    CHECK(encoded.header.body_bytes == body.frame.size());
    return decode_parcel(here, encoded.header, body, known);
  });
}

parcel with(caf::message content) {
  return {.to = {here, 7}, .from = {{0, 3}, 9}, .id = 11, .content = std::move(content)};
}

// Whether it holds an array at any depth. @param seen Structs that are being looked into.
bool holds_array(capnp::StructSchema type, std::set<uint64_t>& seen) {
  if (type == capnp::Schema::from<wire::Tensor>()) return true;
  if (!seen.insert(type.getProto().getId()).second) return false;
  for (auto field : type.getFields()) {
    auto held = field.getType();
    while (held.isList())
      held = held.asList().getElementType();
    if (held.isStruct() && holds_array(held.asStruct(), seen)) return true;
  }
  return false;
}

template <class Body>
void check_lane() {
  auto encoded = encode_parcel(with(caf::make_message(message_builder<Body>{}.finish())));
  std::set<uint64_t> seen;
  auto is_bulk = holds_array(capnp::Schema::from<Body>(), seen)
                 || std::is_same_v<Body, wire::CollectiveFailed>; // goes behind its parts
  INFO(capnp::Schema::from<Body>().getShortDisplayName().cStr());
  CHECK(encoded->header.lane == (is_bulk ? lane::bulk : lane::control));
}

template <class... Bodies>
void check_lanes(body_list<Bodies...>) {
  (check_lane<Bodies>(), ...);
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
    check_lanes(every_body{});
  }

  TEST_CASE("an error of ours keeps its code and its text") {
    auto reason = from_caf(send_error(to_caf({errc::stalled, "nobody is left", "step"})));
    CHECK(reason.throw_site == "step");
    CHECK(reason == error{errc::stalled, "nobody is left"});
  }

  TEST_CASE("CAF's own errors keep their codes for code that compares them") {
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

  TEST_CASE("a message of another schema arrives where it is known, with its arrays") {
    auto known = test::trial_messages();
    auto come = send(with(caf::make_message(make_opinion(3, zeros({1000})))), &known);
    REQUIRE(come);
    REQUIRE(come->content.match_elements<msg<trial::Opinion>>());
    auto said = come->content.get_as<msg<trial::Opinion>>(0);
    CHECK(said.reader().getReplica() == 3);
    CHECK(read_tensor(said.reader().getGradient(), said.owner()).element_count() == 1000);
    auto lane_of = [&](caf::message content) {
      return encode_parcel(with(std::move(content)), &known)->header.lane;
    };
    CHECK(lane_of(caf::make_message(make_opinion(3, zeros({2})))) == lane::bulk);
    CHECK(lane_of(caf::make_message(make_count(3))) == lane::control);
  }

  TEST_CASE("what does not travel is refused in words, by all networks alike") {
    auto known = test::trial_messages();
    auto line_of = [&](caf::message content, const network_messages* messages) {
      auto what = with(std::move(content));
      auto refused = encode_parcel(what, messages);
      auto checked = check_travels(what, messages);
      REQUIRE_FALSE(refused);
      REQUIRE_FALSE(checked);
      CHECK(refused.error() == checked.error());
      CHECK(refused.error().code == errc::unimplemented);
      return refused.error().message;
    };
    CHECK(line_of(caf::make_message(make_count(3)), nullptr)
          == "trial::Count does not travel between nodes: add it to the network_messages of every "
             "process");
    own_message_builder<wire::Token> outside;
    auto token = caf::make_message(std::move(outside).finish());
    CHECK(line_of(token, &known).starts_with("troupe::wire::Token does not travel"));
    CHECK(line_of(caf::make_message(plain{}), &known)
          == "parcel_codec_test::plain does not travel between nodes: it has no schema; send a "
             "msg<T> of a struct of a Cap'n Proto schema");
    CHECK(line_of(caf::make_message(42), &known).starts_with("(42) does not travel"));
  }

  TEST_CASE("a message that its receiver would refuse is refused before it is sent") {
    auto known = test::trial_messages();
    own_message_builder<trial::Opinion> made;
    made.body.initGradient().initShape(1).set(0, 5);
    auto refused = encode_parcel(with(caf::make_message(std::move(made).finish())), &known);
    REQUIRE_FALSE(refused);
    CHECK(refused.error()
          == error{errc::malformed, "trial.Opinion cannot travel: tensor with 0 bytes of elements, "
                                    "its shape needs 20"});
    CHECK(encode_parcel(with(caf::make_message(msg<trial::Opinion>{})), &known).error().code
          == errc::invalid_argument); // it is empty
  }

  TEST_CASE("a message of another schema is refused by a node that does not know it") {
    auto known = test::trial_messages();
    auto encoded = *encode_parcel(with(caf::make_message(make_count(3))), &known);
    auto bytes = std::make_shared<std::vector<std::byte>>(flatten(*encoded.body));
    auto refused = decode_parcel(here, encoded.header, {*bytes, bytes});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == errc::unimplemented);
  }

  TEST_CASE("a request that cannot be sent is answered, and an answer becomes an error") {
    auto request = with({});
    request.id = caf::make_message_id(7).integer_value();
    auto refusal = refusal_of(request, {errc::unimplemented, "no"});
    REQUIRE(refusal);
    CHECK(refusal->to == actor_address{{0, 3}, 9});
    CHECK(from_caf(refusal->content.get_as<caf::error>(0)) == error{errc::unimplemented, "no"});
    auto answer = request;
    answer.id = caf::make_message_id(7).response_id().integer_value();
    auto in_its_place = refusal_of(answer, {errc::unimplemented, "no"});
    REQUIRE(in_its_place);
    CHECK(in_its_place->to == actor_address{here, 7});
    CHECK(in_its_place->id == answer.id);
    answer.id = 0; // a message that nothing waits for
    CHECK_FALSE(refusal_of(answer, {errc::unimplemented, "no"}));
    CHECK_FALSE(refusal_of({.kind = parcel::content_kind::find}, {errc::unimplemented, "no"}));
  }

  TEST_CASE("a body that does not belong to its content is malformed") {
    auto token = flatten(*frame(make_token(1)));
    auto bytes = std::make_shared<std::vector<std::byte>>(token);
    for (auto content :
         {content_code::none, content_code::error, content_code::exit, content_code::down,
          content_code::find, content_code::found, content_code::own}) {
      frame_header header{
        .kind = frame_kind::parcel, .content = content, .body_bytes = bytes->size()};
      CHECK_FALSE(decode_parcel(here, header, {*bytes, bytes}));
    }
  }
}

} // namespace parcel_codec_test
