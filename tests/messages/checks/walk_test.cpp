// SPDX-License-Identifier: Apache-2.0
// The walk goes to every depth that the limits allow and no further. It knows nothing of Troupe's
// own schemas, so it is tried on Cap'n Proto's schema of schemas; its types may contain themselves.
#include "messages/checks/limits.hpp"
#include "messages/checks/walk.hpp"
#include "tests/doctest.hpp"

#include <capnp/message.h>
#include <capnp/schema.capnp.h>
#include <capnp/serialize.h>

namespace walk_test {

using namespace troupe;

namespace {

/// Walks a list of lists of lists ..., `depth` pointers deep.
expected<void> walk_nested(int depth) {
  capnp::MallocMessageBuilder message;
  auto type = message.initRoot<capnp::schema::Type>();
  for (int i = 1; i < depth; ++i)
    type = type.initList().initElementType();
  auto words = capnp::messageToFlatArray(message);
  capnp::FlatArrayMessageReader reader(words, {.nestingLimit = limits::nesting_max});
  fault_listener faults;
  return walk(reader.getRoot<capnp::schema::Type>(), faults);
}

} // namespace

TEST_SUITE("messages/checks/walk") {
  TEST_CASE("goes as deep as the limit") {
    CHECK(walk_nested(limits::nesting_max).has_value());
  }

  TEST_CASE("refuses what is nested deeper") {
    auto walked = walk_nested(limits::nesting_max + 1);
    REQUIRE(!walked);
    CHECK(walked.error().code == errc::malformed);
    CHECK(walked.error().message.find("nested") != std::string::npos);
  }

  TEST_CASE("refuses a text that does not end") {
    capnp::MallocMessageBuilder message;
    message.initRoot<capnp::schema::Node>().setDisplayName("no end");
    auto words = capnp::messageToFlatArray(message);
    words.asBytes()[words.asBytes().size() - 2] = 'x'; // Over the NUL, which padding follows.
    capnp::FlatArrayMessageReader reader(words);
    fault_listener faults;
    auto walked = walk(reader.getRoot<capnp::schema::Node>(), faults);
    REQUIRE(!walked);
    CHECK(walked.error().code == errc::malformed);
  }
}

} // namespace walk_test
