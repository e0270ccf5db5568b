// SPDX-License-Identifier: Apache-2.0
// Messages of other schemas: here a Tensor alone, which Troupe itself never sends.
#include "messages/frame.hpp"
#include "messages/own_message.hpp"
#include "messages/tensor_message.hpp"
#include "tests/doctest.hpp"

#include <vector>

namespace own_message_test {

using namespace troupe;

namespace {

/// So many f32 zeros.
tensor make_zeros(size_t count) {
  return zeros({static_cast<int64_t>(count)});
}

msg<wire::Tensor> make_own(const tensor& value) {
  own_message_builder<wire::Tensor> made;
  write_tensor(*made.storage, made.body, value);
  return std::move(made).finish();
}

} // namespace

TEST_SUITE("messages/own_message") {
  TEST_CASE("a message of any schema carries what was set") {
    auto few = make_own(make_zeros(2));
    CHECK(few.reader().getShape()[0] == 2);
    CHECK(few.reader().getParts()[0].size() == 8);
    CHECK(msg<wire::Tensor>(few) == few);
  }

  TEST_CASE("it refers to the elements of a tensor and keeps them alive") {
    auto zeros = make_zeros(1000);
    std::weak_ptr<const void> memory = zeros.owner();
    auto many = make_own(zeros);
    CHECK(read_tensor(many.reader(), many.owner()).data() == zeros.data());
    zeros = tensor{};
    CHECK(!memory.expired());
    many = {};
    CHECK(memory.expired());
  }

  TEST_CASE("it does not leave its process") {
    auto refused = frame(make_own(make_zeros(2)));
    REQUIRE(!refused);
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().message
          == "a message of a schema of your own has no frame: it stays in its process");
  }
}

} // namespace own_message_test
