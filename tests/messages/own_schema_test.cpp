// SPDX-License-Identifier: Apache-2.0
// Goal: two processes see whether they have one schema; and a schema that a receiver could not
// check is refused. Method: trial.capnp, and changed copies of its nodes.
#include "messages/own_schema.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/trial.capnp.h"

#include <capnp/message.h>
#include <capnp/schema-loader.h>

#include <string>

namespace own_schema_test {

using namespace troupe;

namespace {

template <class T>
expected<own_schema> read(std::string name = "trial.Message") {
  return read_own_schema(capnp::Schema::from<T>(), std::move(name));
}

/// The version of `trial::Count` after a change of its schema.
template <class Change>
uint64_t changed_version(Change change) {
  capnp::MallocMessageBuilder copy;
  copy.setRoot(capnp::Schema::from<trial::Count>().getProto());
  change(copy.getRoot<capnp::schema::Node>());
  capnp::SchemaLoader loader;
  auto changed = loader.load(copy.getRoot<capnp::schema::Node>().asReader());
  return read_own_schema(changed.asStruct(), "trial.Count")->version;
}

} // namespace

TEST_SUITE("messages/own_schema") {
  TEST_CASE("a version depends on names, places, types and defaults, but not on files") {
    auto version = read<trial::Count>()->version;
    CHECK(changed_version([](capnp::schema::Node::Builder) {}) == version);
    CHECK(changed_version([](capnp::schema::Node::Builder node) {
            node.setDisplayName("elsewhere/trial.capnp:Count");
          })
          == version);
    auto field_of
      = [](capnp::schema::Node::Builder node) { return node.getStruct().getFields()[0]; };
    CHECK(changed_version([&](auto node) { field_of(node).setName("sum"); }) != version);
    CHECK(changed_version([&](auto node) {
            auto slot = field_of(node).getSlot();
            slot.getType().setInt64();
            slot.getDefaultValue().setInt64(0);
          })
          != version);
    CHECK(changed_version([&](auto node) {
            field_of(node).getSlot().getDefaultValue().setUint64(1);
            field_of(node).getSlot().setHadExplicitDefault(true);
          })
          != version);
  }

  TEST_CASE("messages of which a struct inside differs have other versions") {
    CHECK(read<trial::Opinion>()->version != read<trial::Remark>()->version);
    CHECK(read<trial::Opinion>()->version == read<trial::Opinion>("another name")->version);
  }

  TEST_CASE("it is known which messages may be long") {
    CHECK(read<trial::Opinion>()->has_arrays);
    CHECK_FALSE(read<trial::Count>()->has_arrays);
  }

  TEST_CASE("a schema that no receiver could check is refused, and the field named") {
    auto envoy = read<trial::Envoy>("trial.Envoy");
    REQUIRE_FALSE(envoy);
    CHECK(envoy.error()
          == error{errc::unimplemented,
                   "the message trial.Envoy cannot travel: Luggage has the field 'anything', "
                   "an AnyPointer or an interface, which no receiver could check; use structs, "
                   "lists, texts and data"});
    auto wrapped = read<trial::Wrapped>();
    REQUIRE_FALSE(wrapped);
    CHECK(wrapped.error().message.find("Box is generic") != std::string::npos);
    auto poll = read<trial::Poll>();
    REQUIRE_FALSE(poll);
    CHECK(poll.error().message.find("Poll requires the field 'votes', which cannot be absent")
          != std::string::npos);
  }

  TEST_CASE("a message has a short name") {
    for (const auto& name : {std::string{}, std::string(limits::own_name_bytes_max + 1, 'x')}) {
      auto refused = read<trial::Count>(name);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().code == errc::invalid_argument);
    }
    CHECK(read<trial::Count>(std::string(limits::own_name_bytes_max, 'x')));
  }
}

} // namespace own_schema_test
