// SPDX-License-Identifier: Apache-2.0
// Goal: tensors enter messages and leave them without a copy. Method: addresses.
#include "actors/interfaces/tensor_payload.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"

#include <algorithm>

namespace tensor_payload_test {

using namespace troupe;

namespace {

constexpr dtype all_types[]
  = {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64};

const auto matrix = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6});

// Large enough for messages to refer to it instead of copying it.
const auto large_matrix = zeros({10, 3});

/// A gradient on its way through a message.
gradient sent(const gradient& value) {
  auto push = make_push_gradient({}, to_payload(value));
  return to_gradient(read_gradient(push.reader().getGradient(), push.owner()));
}

} // namespace

TEST_SUITE("actors/interfaces/tensor_payload") {
  TEST_CASE("a payload refers to the tensor's memory, and keeps it alive") {
    auto value = matrix.clone();
    const auto* address = value.data();
    auto payload = to_payload(value);
    value = tensor{};
    CHECK(payload.data == address);
    CHECK(payload.bytes == 6 * sizeof(float));
    CHECK(payload.extents == std::vector<int64_t>{2, 3});
    CHECK(to_tensor(payload).values<float>()[5] == 6);
  }

  TEST_CASE("a tensor comes back with its type, shape and memory, read-only") {
    for (auto type : all_types) {
      auto value = zeros({3, 2}, type);
      auto back = to_tensor(to_payload(value));
      CHECK(back.type() == type);
      CHECK(back.extents() == shape{3, 2});
      CHECK(back.data() == value.data());
      CHECK(back.read_only());
      CHECK(back.is_contiguous());
    }
  }

  TEST_CASE("scalars and tensors without elements pass") {
    CHECK(to_tensor(to_payload(zeros({}))).values<float>()[0] == 0);
    auto none = to_tensor(to_payload(zeros({0, 4})));
    CHECK(none.element_count() == 0);
    CHECK(none.extents() == shape{0, 4});
  }

  TEST_CASE("a view of other strides is laid out row by row first") {
    auto transposed = matrix.transpose();
    auto back = to_tensor(to_payload(transposed));
    CHECK(back.data() != transposed.data());
    CHECK(back.extents() == shape{3, 2});
    const float expected[] = {1, 4, 2, 5, 3, 6};
    CHECK(std::ranges::equal(back.values<float>(), expected));
  }

  TEST_CASE("a view of some rows is sent where it lies") {
    auto row = matrix.slice(1, 2);
    auto payload = to_payload(row);
    CHECK(payload.data == row.data());
    CHECK(payload.bytes == 3 * sizeof(float));
  }

  TEST_CASE("a dense gradient passes a message without a copy") {
    auto back = sent(large_matrix);
    REQUIRE(std::holds_alternative<tensor>(back));
    CHECK(std::get<tensor>(back).data() == large_matrix.data());
  }

  TEST_CASE("a sparse gradient passes a message without a copy") {
    indexed_slices rows{zeros({10}, dtype::i64), large_matrix, {7, 3}};
    auto back = sent(rows);
    REQUIRE(std::holds_alternative<indexed_slices>(back));
    const auto& slices = std::get<indexed_slices>(back);
    CHECK(slices.indices.data() == rows.indices.data());
    CHECK(slices.values.data() == rows.values.data());
    CHECK(slices.dense_extents == shape{7, 3});
  }

  TEST_CASE("what came out of a message keeps it alive") {
    gradient back;
    {
      auto value = matrix.clone();
      back = sent(value);
    }
    CHECK(std::get<tensor>(back).values<float>()[3] == 4);
  }
}

} // namespace tensor_payload_test
