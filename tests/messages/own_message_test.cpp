// SPDX-License-Identifier: Apache-2.0
// Goal: messages of a trainer's own schema keep their arrays, and nothing that a peer sends in
// their place does harm. Method: trial.capnp, and frames of it that are cut, bent or lie.
#include "messages/decode.hpp"
#include "messages/frame.hpp"
#include "messages/own.capnp.h"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/hostile_frame.hpp"
#include "tests/messages/trial_messages.hpp"

#include <capnp/dynamic.h>
#include <kj/string.h>

#include <vector>

namespace own_message_test {

using namespace troupe;

namespace {

const own_schema& opinion_schema() {
  static const auto schema
    = *read_own_schema(capnp::Schema::from<trial::Opinion>(), "trial.Opinion");
  return schema;
}

const own_schema* find_schema(uint64_t id) {
  return id == capnp::typeId<trial::Opinion>() ? &opinion_schema() : nullptr;
}

std::vector<std::byte> frame_of(const msg<trial::Opinion>& message) {
  return flatten(*frame(message));
}

expected<msg<trial::Opinion>> decode_opinion(received_bytes bytes) {
  return decode_own(std::move(bytes), find_schema).map([](const received_own_message& own) {
    return msg<trial::Opinion>{own.storage};
  });
}

/// The frame of an opinion that `fill` has filled, with whatever it likes.
template <class Fill>
received_bytes opinion_frame(Fill fill) {
  capnp::MallocMessageBuilder message;
  auto root = message.initRoot<wire::OwnMessage>();
  root.setSchema(capnp::typeId<trial::Opinion>());
  fill(root.getBody().initAs<trial::Opinion>());
  auto words = capnp::messageToFlatArray(message);
  return receive(std::as_bytes(std::span(words.begin(), words.size())));
}

/// The receiver's refusal of an opinion that `fill` has filled; the sender refuses it alike.
template <class Fill>
error refusal_of(Fill fill) {
  auto received = decode_opinion(opinion_frame(fill));
  own_message_builder<trial::Opinion> made;
  fill(made.body);
  auto built = std::move(made).finish();
  auto sent = check_own_message(*built.owner(), opinion_schema());
  REQUIRE_FALSE(received);
  REQUIRE_FALSE(sent);
  CHECK(sent.error().code == received.error().code);
  CHECK(sent.error().message == "trial.Opinion cannot travel: " + received.error().message);
  return received.error();
}

/// Reads every field.
std::string text_of(const msg<trial::Opinion>& message) {
  return kj::str(capnp::DynamicStruct::Reader(message.reader())).cStr();
}

} // namespace

TEST_SUITE("messages/own_message") {
  TEST_CASE("a message of any schema carries what was set") {
    auto said = make_opinion(3, zeros({2}));
    CHECK(said.reader().getReplica() == 3);
    CHECK(said.reader().getGradient().getParts()[0].size() == 8);
    CHECK(msg<trial::Opinion>(said) == said);
  }

  TEST_CASE("it refers to the elements of a tensor and keeps them alive") {
    auto elements = zeros({1000});
    std::weak_ptr<const void> memory = elements.owner();
    auto many = make_opinion(0, elements);
    CHECK(read_tensor(many.reader().getGradient(), many.owner()).data() == elements.data());
    elements = tensor{};
    CHECK(!memory.expired());
    many = {};
    CHECK(memory.expired());
  }

  TEST_CASE("its frame refers to the elements, too, and a receiver reads them in place") {
    auto elements = make_array<float>({1000}, counting_to(1000));
    auto said = make_opinion(7, elements);
    auto sent = *frame(said);
    auto is_shared
      = [&](auto piece) { return piece.data() == static_cast<const std::byte*>(elements.data()); };
    CHECK(std::ranges::any_of(sent.pieces(), is_shared));
    auto bytes = receive(flatten(sent));
    auto come = decode_opinion(bytes);
    REQUIRE(come);
    CHECK(text_of(*come) == text_of(said));
    auto read = read_tensor(come->reader().getGradient(), come->owner());
    CHECK(static_cast<const std::byte*>(read.data()) > bytes.frame.data());
    CHECK(static_cast<const std::byte*>(read.data()) < bytes.frame.data() + bytes.frame.size());
    CHECK(read.values<float>()[999] == 1000);
    CHECK(check_own_message(*said.owner(), opinion_schema()));
  }

  TEST_CASE("a message that was received is its own frame") {
    auto first = frame_of(make_opinion(7, zeros({100})));
    auto come = decode_opinion(receive(first));
    REQUIRE(come);
    CHECK(frame_of(*come) == first);
  }

  TEST_CASE("one of more arrays than a frame has segments is packed") {
    own_message_builder<trial::Opinion> made;
    auto remarks = made.body.initRemarks(600);
    for (auto remark : remarks) {
      auto rows = remark.initRows();
      write_tensor(*made.storage, rows.initIndices(), zeros({1}, dtype::i64));
      write_tensor(*made.storage, rows.initValues(), zeros({1, 100}));
      rows.initDenseShape(2).set(0, 4);
      rows.getDenseShape().set(1, 100);
    }
    auto said = std::move(made).finish();
    auto come = decode_opinion(receive(frame_of(said)));
    REQUIRE(come);
    CHECK(text_of(*come) == text_of(said));
  }

  TEST_CASE("every truncation is refused") {
    auto whole = frame_of(make_opinion(3, zeros({40})));
    for (size_t bytes = 0; bytes < whole.size(); ++bytes)
      CHECK_FALSE(decode_opinion(receive(std::span(whole).first(bytes))));
  }

  TEST_CASE("with any bit flipped it is refused, or can be read") {
    auto whole = frame_of(make_opinion(3, zeros({4})));
    size_t refused = 0;
    for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      auto bent = whole;
      bent[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      auto come = decode_opinion(receive(bent));
      if (come)
        REQUIRE_NOTHROW(static_cast<void>(text_of(*come)));
      else
        ++refused;
    }
    CHECK(refused > whole.size());
  }

  TEST_CASE("a message that the receiver does not know is refused") {
    auto unknown = decode_own(receive(flatten(*frame(make_count(1)))), find_schema);
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().code == errc::unimplemented);
    CHECK(unknown.error().message
          == "message of an unknown schema: add it to the network_messages of every process");
    CHECK(refusal(decode_own(receive(flatten(*frame(make_token(1)))), find_schema))
          == errc::unimplemented); // one of ours, in an envelope
  }

  TEST_CASE("arrays that lie are refused at any depth, by the sender and the receiver") {
    auto lie = [](wire::Tensor::Builder about) {
      about.initShape(1).set(0, 5);
      about.initParts(1).init(0, 8);
    };
    auto expect = [](const error& refused) {
      CHECK(refused
            == error{errc::malformed, "tensor with 8 bytes of elements, its shape needs 20"});
    };
    expect(refusal_of([&](trial::Opinion::Builder made) { lie(made.initGradient()); }));
    expect(refusal_of(
      [&](trial::Opinion::Builder made) { lie(made.getVerdict().initChange().initDense()); }));
    expect(refusal_of([&](trial::Opinion::Builder made) {
      lie(made.initRemarks(3)[2].initNext().initRows().initIndices());
    }));
  }

  TEST_CASE("a message that breaks a rule beside its schema, or a limit, is refused") {
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            made.setMood(static_cast<trial::Mood>(7));
          }).message
          == "no Mood has the value 7");
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            made.initRemarks(1)[0].initText(limits::text_bytes_max + 1);
          }).code
          == errc::limit_exceeded);
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            auto remark = made.initRemarks(1)[0];
            for (int depth = 0; depth < limits::nesting_max; ++depth)
              remark = remark.initNext();
          }).code
          == errc::malformed);
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            capnp::AnyStruct::Builder(std::move(made)).getDataSection()[6]
              = 9; // the tag of the union
          }).message
          == "verdict with an unknown member");
  }

  TEST_CASE("so is what is wrong with an element of a list, or of a list in it") {
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            made.getVerdict().initLists().initMoods(3).set(2, static_cast<trial::Mood>(7));
          }).message
          == "no Mood has the value 7");
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            made.getVerdict().initLists().initWords(2).init(1, limits::text_bytes_max + 1);
          }).message.starts_with("text of "));
    CHECK(refusal_of([](trial::Opinion::Builder made) {
            auto page = made.getVerdict().initLists().initPages(2).init(1, 3);
            page[2].initText(limits::text_bytes_max + 1);
          }).message.starts_with("text of "));
  }

  TEST_CASE("a field that the schema requires is there") {
    CHECK(refusal_of([](trial::Opinion::Builder made) { made.getVerdict().initMotion(); }).message
          == "Motion without its amount");
  }

  TEST_CASE("an array that was not set is none") {
    own_message_builder<trial::Opinion> made;
    auto bare = std::move(made).finish();
    CHECK(check_own_message(*bare.owner(), opinion_schema()));
    auto come = decode_opinion(receive(frame_of(bare)));
    REQUIRE(come);
    CHECK(read_tensor(come->reader().getGradient(), come->owner()).element_count() == 0);
  }
}

} // namespace own_message_test
