// SPDX-License-Identifier: Apache-2.0
// Tensors and gradients of a peer keep the rules of tensor.capnp, or the message is refused.
#include "messages/checks/check.hpp"
#include "messages/checks/limits.hpp"
#include "messages/tensor_message.hpp"
#include "tests/doctest.hpp"
#include "tests/messages/examples.hpp"
#include "tests/messages/hostile_frame.hpp"

#include <capnp/dynamic.h>
#include <capnp/serialize.h>

#include <optional>

namespace check_test {

using namespace troupe;

namespace {

using extents = std::vector<int64_t>;

void set_extents(capnp::List<int64_t>::Builder target, const extents& values) {
  for (size_t i = 0; i < values.size(); ++i)
    target.set(static_cast<capnp::uint>(i), values[i]);
}

void fill_tensor(wire::Tensor::Builder tensor, wire::DType type, const extents& shape,
                 const std::vector<size_t>& part_bytes) {
  tensor.setDtype(type);
  set_extents(tensor.initShape(static_cast<capnp::uint>(shape.size())), shape);
  auto parts = tensor.initParts(static_cast<capnp::uint>(part_bytes.size()));
  for (size_t i = 0; i < part_bytes.size(); ++i)
    parts.init(static_cast<capnp::uint>(i), static_cast<capnp::uint>(part_bytes[i]));
}

errc judge_tensor(wire::DType type, const extents& shape, const std::vector<size_t>& part_bytes) {
  return refusal(decode_any(hostile_frame([&](auto envelope) {
    fill_tensor(envelope.initVariableSnapshot().initValue(), type, shape, part_bytes);
  })));
}

/// A sparse gradient that breaks no rule, for each test to break one.
struct slices_fields {
  wire::DType index_type = wire::DType::I64;
  extents index_shape{2};
  std::vector<int64_t> indices{3, 1};
  extents value_shape{2, 5};
  extents dense_shape{4, 5};
};

void fill_slices(wire::IndexedSlices::Builder slices, const slices_fields& fields) {
  auto index_bytes = kj::arrayPtr(fields.indices.data(), fields.indices.size()).asBytes();
  auto indices = slices.initIndices();
  fill_tensor(indices, fields.index_type, fields.index_shape, {});
  indices.initParts(1).set(0, index_bytes);
  size_t value_bytes = 4;
  for (auto extent : fields.value_shape)
    value_bytes *= static_cast<size_t>(extent);
  fill_tensor(slices.initValues(), wire::DType::F32, fields.value_shape, {value_bytes});
  set_extents(slices.initDenseShape(static_cast<capnp::uint>(fields.dense_shape.size())),
              fields.dense_shape);
}

errc judge_slices(const slices_fields& fields) {
  return refusal(decode_any(hostile_frame([&](auto envelope) {
    fill_slices(envelope.initPushGradient().initGradient().initSparse(), fields);
  })));
}

bool spoil(capnp::DynamicStruct::Builder message, size_t& place);

bool spoil_value(const capnp::Type& type, capnp::DynamicValue::Builder value, size_t& place) {
  if (type.isStruct()) return spoil(value.as<capnp::DynamicStruct>(), place);
  if (!type.isList()) return false;
  auto element = type.asList().getElementType();
  auto list = value.as<capnp::DynamicList>();
  for (capnp::uint i = 0; i < list.size(); ++i)
    if (spoil_value(element, list[i], place)) return true;
  return false;
}

// Gives an array an extent that none has. @param place Arrays to leave as they are before; counted
// down. @returns False if the message has no more.
bool spoil(capnp::DynamicStruct::Builder message, size_t& place) {
  if (message.getSchema() == capnp::Schema::from<wire::Tensor>()) {
    if (place-- > 0) return false;
    message.as<wire::Tensor>().initShape(1).set(0, -3);
    return true;
  }
  for (auto field : message.getSchema().getFields())
    if (message.has(field) && spoil_value(field.getType(), message.get(field), place)) return true;
  return false;
}

// A frame like this one with one array spoilt; nothing if it has no array at that place.
std::optional<received_bytes> spoilt(std::span<const std::byte> frame, size_t place) {
  auto whole = receive(frame);
  capnp::FlatArrayMessageReader reader{
    kj::arrayPtr(reinterpret_cast<const capnp::word*>(whole.frame.data()),
                 whole.frame.size() / sizeof(capnp::word))};
  capnp::MallocMessageBuilder message;
  message.setRoot(reader.getRoot<wire::Envelope>());
  if (!spoil(capnp::DynamicStruct::Builder{message.getRoot<wire::Envelope>()}, place)) return {};
  auto words = capnp::messageToFlatArray(message);
  return receive(std::as_bytes(std::span(words.begin(), words.size())));
}

} // namespace

TEST_SUITE("messages/checks/check") {
  TEST_CASE("an array that is none is found in every place of every message that holds one") {
    size_t count = 0;
    for (const auto& example : message_examples()) {
      CAPTURE(example.name);
      REQUIRE(refusal(decode_any(receive(example.frame))) == errc::none);
      size_t place = 0;
      for (; auto frame = spoilt(example.frame, place); ++place)
        CHECK_MESSAGE(refusal(decode_any(std::move(*frame))) == errc::malformed, place);
      count += place;
    }
    CHECK(count >= 25);
  }

  TEST_CASE("a tensor has the bytes that its shape and type need") {
    CHECK(judge_tensor(wire::DType::F32, {2, 3}, {24}) == errc::none);
    CHECK(judge_tensor(wire::DType::F32, {2, 3}, {23}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F64, {2, 3}, {24}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {}, {4}) == errc::none);
    CHECK(judge_tensor(wire::DType::F32, {}, {}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {0}, {}) == errc::none);
    CHECK(judge_tensor(wire::DType::F32, {0}, {4}) == errc::malformed);
  }

  TEST_CASE("extents are not negative and their product does not overflow") {
    CHECK(judge_tensor(wire::DType::F32, {-1}, {4}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {-2, -2}, {16}) == errc::malformed);
    auto half = int64_t{1} << 32;
    CHECK(judge_tensor(wire::DType::F32, {half, half}, {}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {half, half, 0}, {}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {INT64_MAX}, {}) == errc::malformed);
  }

  TEST_CASE("a tensor has a limited rank and a limited number of parts") {
    CHECK(judge_tensor(wire::DType::F32, extents(limits::rank_max, 1), {4}) == errc::none);
    CHECK(judge_tensor(wire::DType::F32, extents(limits::rank_max + 1, 1), {4})
          == errc::limit_exceeded);
    CHECK(judge_tensor(wire::DType::F32, {1}, std::vector<size_t>(limits::parts_max + 1, 1))
          == errc::limit_exceeded);
  }

  TEST_CASE("only the last part of a tensor is short, and none is empty") {
    CHECK(judge_tensor(wire::DType::F32, {4}, {8, 8}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {4}, {16, 0}) == errc::malformed);
    CHECK(judge_tensor(wire::DType::F32, {0}, {0}) == errc::malformed);
  }

  TEST_CASE("an unknown element type is refused") {
    CHECK(judge_tensor(static_cast<wire::DType>(6), {1}, {4}) == errc::malformed);
    CHECK(judge_tensor(static_cast<wire::DType>(256), {1}, {4}) == errc::malformed);
  }

  TEST_CASE("a tensor of another process lies on no device") {
    auto judge = [](uint8_t kind) {
      return refusal(decode_any(hostile_frame([&](wire::Envelope::Builder envelope) {
        auto value = envelope.initVariableSnapshot().initValue();
        fill_tensor(value, wire::DType::F32, {2}, {8});
        value.setDeviceKind(kind);
      })));
    };
    CHECK(judge(0) == errc::none);
    CHECK(judge(1) == errc::malformed);
    CHECK(judge(255) == errc::malformed);
  }

  TEST_CASE("a sparse gradient has its rows inside the dense shape") {
    CHECK(judge_slices({}) == errc::none);
    CHECK(judge_slices({.indices = {0, 3}}) == errc::none);
    CHECK(judge_slices({.indices = {4, 1}}) == errc::malformed);
    CHECK(judge_slices({.indices = {3, -1}}) == errc::malformed);
  }

  TEST_CASE("a sparse gradient has a row number for each row") {
    CHECK(judge_slices({.index_shape = {1}, .indices = {3}}) == errc::malformed);
    CHECK(judge_slices({.index_shape = {2, 1}}) == errc::malformed);
    CHECK(judge_slices({.index_type = wire::DType::F64}) == errc::malformed);
    CHECK(judge_slices({.value_shape = {}}) == errc::malformed);
    CHECK(judge_slices({.value_shape = {3, 5}}) == errc::malformed);
  }

  TEST_CASE("the rows of a sparse gradient fit its dense shape") {
    CHECK(judge_slices({.dense_shape = {}}) == errc::malformed);
    CHECK(judge_slices({.dense_shape = {4}}) == errc::malformed);
    CHECK(judge_slices({.dense_shape = {4, 6}}) == errc::malformed);
    CHECK(judge_slices({.dense_shape = {4, 5, 1}}) == errc::malformed);
    CHECK(judge_slices({.dense_shape = {-4, 5}}) == errc::malformed);
    CHECK(judge_slices({.dense_shape = {INT64_MAX, 5}}) == errc::malformed);
  }

  TEST_CASE("a message without its arrays is refused, at any depth") {
    auto refusal_of = [](auto fill) { return decode_any(hostile_frame(fill)).error().message; };
    CHECK(refusal_of([](auto envelope) { envelope.initVariableSnapshot(); })
          == "VariableSnapshot without its value");
    CHECK(refusal_of([](auto envelope) { envelope.initRestoreState(); })
          == "RestoreState without its state");
    CHECK(refusal_of([](auto envelope) { envelope.initMirrorState().initState(); })
          == "VariableState without its value");
    CHECK(refusal_of([](auto envelope) { envelope.initReplicaProgress().initKept(1); })
          == "NamedTensor without its value");
    CHECK(
      refusal_of([](auto envelope) { envelope.initApplyUpdate().initGradients(1)[0].initSparse(); })
      == "IndexedSlices without its indices");
  }

  TEST_CASE("an array that may be absent is not missed") {
    CHECK(refusal(decode_any(hostile_frame([](auto envelope) {
            envelope.initMirrorState().initMade(1);
            fill_tensor(envelope.getMirrorState().initState().initValue(), wire::DType::F32, {},
                        {4});
          })))
          == errc::none);
    CHECK(refusal(decode_any(hostile_frame([](auto envelope) { envelope.initPushGradient(); })))
          == errc::none);
  }

  TEST_CASE("the gradients of an update are checked one by one") {
    auto frame = hostile_frame([](auto envelope) {
      auto gradients = envelope.initApplyUpdate().initGradients(3);
      fill_slices(gradients[0].initSparse(), {});
      fill_tensor(gradients[1].initDense(), wire::DType::F32, {2}, {4});
    });
    CHECK(refusal(decode_any(frame)) == errc::malformed);
  }

  TEST_CASE("a gradient of an unknown kind is refused") {
    auto frame = hostile_frame([](auto envelope) {
      auto gradient = envelope.initPushGradient().initGradient();
      auto data = capnp::AnyStruct::Builder(std::move(gradient)).getDataSection();
      data[0] = 9; // The union's discriminant.
    });
    CHECK(refusal(decode_any(frame)) == errc::malformed);
  }
}

} // namespace check_test
