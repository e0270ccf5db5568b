// SPDX-License-Identifier: Apache-2.0
// Tensors get into and out of messages without being copied: shown by where they lie.
#include "messages/checks/limits.hpp"
#include "messages/errors/failure.hpp"
#include "messages/tensor_message.hpp"
#include "messages/training_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"

#include <capnp/message.h>

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <thread>

namespace tensor_message_test {

using namespace troupe;

namespace {

/// Zeros that take no memory until they are written, for tensors larger than a test should touch.
std::shared_ptr<std::byte> map_zeros(size_t bytes) {
  auto* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  return {static_cast<std::byte*>(memory), [bytes](std::byte* begin) { munmap(begin, bytes); }};
}

/// An f32 tensor of zeros.
tensor map_tensor(size_t bytes) {
  auto memory = map_zeros(bytes);
  return tensor::wrap(memory.get(), dtype::f32, {static_cast<int64_t>(bytes / 4)}, memory);
}

/// `frame` as received, without touching the memory of the elements of `zeros`.
received_bytes receive_zeros(const message_frame& frame, const tensor& zeros) {
  auto buffer = map_zeros(frame.bytes());
  auto* position = buffer.get();
  for (auto piece : frame.pieces()) {
    const auto* first = static_cast<const std::byte*>(zeros.data());
    auto is_element = piece.data() >= first && piece.data() < first + zeros.bytes();
    if (!is_element) std::memcpy(position, piece.data(), piece.size());
    position += piece.size();
  }
  return {{buffer.get(), frame.bytes()}, buffer};
}

const tensor& dense_of(const optional_gradient& gradient) {
  return std::get<tensor>(gradient.value());
}

/// Bytes of the values of all gradients of an update, all of them sparse.
size_t value_bytes_of(const msg<wire::ApplyUpdate>& update) {
  size_t bytes = 0;
  for (auto reader : update.reader().getGradients()) {
    auto gradient = read_gradient(reader, update.owner());
    bytes += std::get<indexed_slices>(*gradient).values.bytes();
  }
  return bytes;
}

} // namespace

TEST_SUITE("messages/tensor_message") {
  TEST_CASE("a tensor on a device stays there, however small, and in whichever message") {
    const device where{device_kind::cuda, 3};
    auto owner = std::make_shared<int>(0);
    alignas(8) float elements[2]{};
    auto there = tensor::wrap_on(where, elements, dtype::f32, {2}, owner);
    auto push = make_push_gradient({}, gradient{there});
    const msg<wire::PushGradient> pushes[] = {push};
    auto update = make_apply_update(0, 0, pushes);
    auto read = read_gradient(update.reader().getGradients()[0], update.owner());
    CHECK(dense_of(read).device() == where);
    CHECK(dense_of(read).data() == elements);
    CHECK(dense_of(read).read_only());
    CHECK(owner.use_count() > 1);
    CHECK_THROWS_AS(static_cast<void>(dense_of(read).values<float>()), failure);
  }

  TEST_CASE("a gradient is read where its sender holds it") {
    auto value = make_array<float>({4, 5}, counting_to(20));
    auto push = make_push_gradient({}, value);
    auto gradient = read_gradient(push.reader().getGradient(), push.owner());
    CHECK(dense_of(gradient).data() == value.data());
    CHECK(dense_of(gradient).bytes() == 80);
  }

  TEST_CASE("the values of a sparse gradient are read where its sender holds them") {
    auto slices = make_slices();
    auto push = make_push_gradient({}, slices);
    auto gradient = read_gradient(push.reader().getGradient(), push.owner());
    CHECK(std::get<indexed_slices>(*gradient).values.data() == slices.values.data());
  }

  TEST_CASE("a few elements are copied, more are not") {
    for (size_t count : {1, 2, 15, 16, 17, 18}) {
      auto value = make_array<float>({static_cast<int64_t>(count)}, counting_to(count));
      auto snapshot = make_variable_snapshot(1, value);
      auto got = read_tensor(snapshot.reader().getValue(), snapshot.owner());
      CHECK((got.data() == value.data()) == (count * 4 > limits::copied_bytes_max));
      REQUIRE(got.bytes() == count * 4);
      CHECK(std::memcmp(got.data(), value.data(), got.bytes()) == 0);
    }
  }

  TEST_CASE("an update refers to the gradients where the pushes hold them, and keeps them alive") {
    auto value = make_array<float>({20}, counting_to(20));
    std::weak_ptr<const void> memory = value.owner();
    auto data = value.data();
    auto pushes = std::vector{make_push_gradient({}, std::move(value))};
    auto update = make_apply_update(1, 0, pushes);
    pushes.clear();
    value = tensor{};
    CHECK(!memory.expired());
    auto gradient = read_gradient(update.reader().getGradients()[0], update.owner());
    CHECK(dense_of(gradient).data() == data);
    update = {};
    CHECK(!memory.expired());
    gradient.reset();
    CHECK(memory.expired());
  }

  TEST_CASE("a received tensor is read in the buffer it came in, which it keeps alive") {
    auto value = make_array<float>({3}, {1, 2, 3});
    auto bytes = receive(flatten(frame(make_variable_snapshot(1, value)).value()));
    auto frame = bytes.frame;
    std::weak_ptr<const void> memory = bytes.owner;
    auto snapshot = decode<wire::VariableSnapshot>(std::move(bytes)).value();
    auto got = read_tensor(snapshot.reader().getValue(), snapshot.owner());
    const auto* first = static_cast<const std::byte*>(got.data());
    CHECK(first > frame.data());
    CHECK(first + got.bytes() <= frame.data() + frame.size());
    CHECK(std::memcmp(got.data(), value.data(), 12) == 0);
    snapshot = {};
    CHECK(!memory.expired());
    got = tensor{};
    CHECK(memory.expired());
  }

  TEST_CASE("a received gradient goes into an update without being copied") {
    auto push = send_and_receive(make_push_gradient({}, make_slices()));
    auto update = make_apply_update(1, 0, std::span(&push, 1));
    auto received = read_gradient(push.reader().getGradient(), push.owner());
    auto applied = read_gradient(update.reader().getGradients()[0], update.owner());
    CHECK(std::get<indexed_slices>(*applied).values.data()
          == std::get<indexed_slices>(*received).values.data());
  }

  TEST_CASE("elements that do not begin at a whole word are copied") {
    auto memory = make_array<float>({20}, counting_to(20));
    auto tail = memory.slice(1, 20);
    auto snapshot = make_variable_snapshot(1, tail);
    CHECK(snapshot.owner()->attachments.empty());
    auto got = read_tensor(snapshot.reader().getValue(), snapshot.owner());
    CHECK(got.data() != tail.data());
    CHECK(std::memcmp(got.data(), tail.data(), 76) == 0);
  }

  TEST_CASE("every dtype comes back with its shape, read-only") {
    for (auto type : {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64}) {
      auto value = zeros({30, 2}, type);
      auto snapshot = make_variable_snapshot(1, value);
      auto got = read_tensor(snapshot.reader().getValue(), snapshot.owner());
      CHECK(got.type() == type);
      CHECK(got.extents() == value.extents());
      CHECK(got.data() == value.data());
      CHECK(got.read_only());
      CHECK(got.is_contiguous());
    }
  }

  TEST_CASE("a view of other strides is laid out row by row first") {
    auto transposed = make_tensor({2, 3}, {1, 2, 3, 4, 5, 6}).transpose();
    auto snapshot = make_variable_snapshot(1, transposed);
    auto got = read_tensor(snapshot.reader().getValue(), snapshot.owner());
    CHECK(got.extents() == shape{3, 2});
    const float expected[] = {1, 4, 2, 5, 3, 6};
    CHECK(std::ranges::equal(got.values<float>(), expected));
  }

  TEST_CASE("a view of some rows is sent where it lies") {
    auto rows = zeros({3, 20}).slice(1, 2);
    auto snapshot = make_variable_snapshot(1, rows);
    CHECK(read_tensor(snapshot.reader().getValue(), snapshot.owner()).data() == rows.data());
  }

  TEST_CASE("a tensor without elements and a scalar travel") {
    auto empty = send_and_receive(make_variable_snapshot(1, zeros({0, 3}, dtype::i64)));
    auto got = read_tensor(empty.reader().getValue(), empty.owner());
    CHECK(got.extents() == shape{0, 3});
    CHECK(got.bytes() == 0);
    auto scalar = send_and_receive(make_variable_snapshot(1, make_array<float>({}, {7})));
    CHECK(read_tensor(scalar.reader().getValue(), scalar.owner()).bytes() == 4);
  }

  TEST_CASE("a tensor beyond Cap'n Proto's own 64 MiB is read again and again") {
    auto value = map_tensor(size_t{80} << 20);
    auto sent = make_variable_snapshot(1, value);
    auto received = decode<wire::VariableSnapshot>(receive_zeros(frame(sent).value(), value));
    REQUIRE(received);
    for (int i = 0; i < 1000; ++i) {
      CHECK(read_tensor(sent.reader().getValue(), sent.owner()).bytes() == value.bytes());
      CHECK(read_tensor(received->reader().getValue(), received->owner()).bytes() == value.bytes());
    }
  }

  TEST_CASE("a tensor of several parts is one piece of memory on both sides") {
    auto value = map_tensor(2 * limits::part_bytes_max + 20);
    auto sent = make_variable_snapshot(1, value);
    CHECK(sent.reader().getValue().getParts().size() == 3);
    CHECK(read_tensor(sent.reader().getValue(), sent.owner()).data() == value.data());
    auto bytes = receive_zeros(frame(sent).value(), value);
    auto buffer = bytes.frame;
    auto received = decode<wire::VariableSnapshot>(std::move(bytes));
    REQUIRE(received);
    auto got = read_tensor(received->reader().getValue(), received->owner());
    CHECK(got.bytes() == value.bytes());
    const auto* first = static_cast<const std::byte*>(got.data());
    CHECK(first > buffer.data());
    CHECK(first + got.bytes() <= buffer.data() + buffer.size());
  }

  TEST_CASE("parts that lie apart are put together") {
    capnp::MallocMessageBuilder message;
    auto tensor = message.initRoot<wire::Tensor>();
    tensor.initShape(1).set(0, 4);
    auto parts = tensor.initParts(2);
    capnp::byte bytes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    parts.set(1, kj::arrayPtr(bytes + 8, 8));
    parts.set(0, kj::arrayPtr(bytes, 8));
    auto got = read_tensor(tensor.asReader(), nullptr);
    REQUIRE(got.bytes() == 16);
    CHECK(std::memcmp(got.data(), bytes, 16) == 0);
    CHECK(got.owner() != nullptr);
  }

  TEST_CASE("many threads read one message") {
    auto push = send_and_receive(make_push_gradient({.replica = 3}, make_slices()));
    auto update = make_apply_update(1, 0, std::vector(20, push));
    std::vector<size_t> sums(4);
    std::vector<std::thread> threads;
    for (auto& sum : sums)
      threads.emplace_back([&sum, update, push] {
        for (int i = 0; i < 200; ++i)
          sum += value_bytes_of(update) + push.reader().getOrigin().getReplica();
      });
    for (auto& thread : threads)
      thread.join();
    CHECK(sums == std::vector<size_t>(4, 200 * (20 * 80 + 3)));
  }
}

} // namespace tensor_message_test
