// SPDX-License-Identifier: Apache-2.0
// Goal: collectives that share a message are those that should, and come apart again. Method:
// tables, without processes.
#include "messages/mapped.hpp"
#include "strategies/reduce/process_group.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

namespace process_group_test {

using namespace troupe;
using namespace troupe::test;

namespace {

collective_call sum_of(const std::string& name, const numbers& values, dtype type = dtype::f32) {
  auto extents = static_cast<int64_t>(values.size());
  return {.kind = collective_kind::all_reduce,
          .name = name,
          .contributions = {array({extents}, values, type), array({extents}, values, type)}};
}

std::vector<std::string> names_of(const packed_calls& packed) {
  return mapped(packed.calls,
                [](const auto& call) { return call.name.substr(0, call.name.find('(')); });
}

using names = std::vector<std::string>;

} // namespace

TEST_SUITE("strategies/reduce/process_group") {
  TEST_CASE("sums that devices make are made as one, behind what they do not make") {
    collective_call gather{
      .kind = collective_kind::all_gather, .name = "rows", .contributions = {zeros({1})}};
    numbers many(lone_bytes / 4);
    for (bool on_devices : {false, true}) {
      std::vector calls{sum_of("a", many), gather, sum_of("b", many), sum_of("c", {1})};
      for (auto& call : calls)
        call.on_devices = on_devices && call.kind == collective_kind::all_reduce;
      auto packed = pack(calls, 0).calls;
      REQUIRE(packed.size() == 4);
      for (size_t i = 0; i < 4; ++i)
        CHECK(packed[i].followers == (on_devices && i == 1 ? 2 : 0));
    }
  }

  TEST_CASE("sums share a pack, the last of them first") {
    auto packed = pack({sum_of("a", {1, 2}), sum_of("b", {3}), sum_of("c", {4, 5, 6})}, 0);
    CHECK(names_of(packed) == names{"c and 2 more "});
    REQUIRE(packed.calls[0].contributions.size() == 2);
    for (const auto& flat : packed.calls[0].contributions)
      CHECK(numbers_of(flat) == numbers{4, 5, 6, 3, 1, 2});
  }

  TEST_CASE("a pack ends once it is larger than the bytes of a pack") {
    std::vector<collective_call> calls;
    for (const auto* name : {"a", "b", "c", "d", "e"})
      calls.push_back(sum_of(name, {1, 2}));
    CHECK(names_of(pack(calls, 1)) == names{"e", "d", "c", "b", "a"});
    CHECK(names_of(pack(calls, 8)) == names{"e and 1 more ", "c and 1 more ", "a"});
    CHECK(names_of(pack(calls, 1000)) == names{"e and 4 more "});
  }

  TEST_CASE("large sums travel by themselves, if packs have no size") {
    numbers many(lone_bytes / 4);
    CHECK(names_of(pack({sum_of("a", {1}), sum_of("b", many), sum_of("c", {1})}, 0))
          == names{"b", "c and 1 more "});
    CHECK(pack({sum_of("a", {1}), sum_of("b", many), sum_of("c", {1})}, lone_bytes * 9).calls.size()
          == 1);
  }

  TEST_CASE("only sums of one dtype share a pack") {
    auto gather = sum_of("g", {1});
    gather.kind = collective_kind::all_gather;
    auto packed
      = pack({sum_of("a", {1}), sum_of("b", {2}, dtype::f64), gather, sum_of("c", {3})}, 0);
    CHECK(names_of(packed) == names{"g", "c and 1 more ", "b"});
  }

  TEST_CASE("results are given back to the calls in their order and shapes") {
    auto square = sum_of("b", {3, 4, 5, 6});
    for (auto& each : square.contributions)
      each = each.reshape({2, 2});
    std::vector<collective_call> calls{sum_of("a", {1, 2}), square, sum_of("c", {7}, dtype::f64),
                                       sum_of("d", {})};
    auto packed = pack(calls, 0);
    auto results
      = mapped(packed.calls, [](const auto& call) { return call.contributions.front(); });
    auto unpacked = unpack(packed, calls, results);
    REQUIRE(unpacked.size() == 4);
    for (size_t i = 0; i < calls.size(); ++i) {
      CHECK(numbers_of(unpacked[i]) == numbers_of(calls[i].contributions.front()));
      CHECK(unpacked[i].extents() == calls[i].contributions.front().extents());
      CHECK(unpacked[i].type() == calls[i].contributions.front().type());
    }
  }

  TEST_CASE("the name of a pack differs if a name or a shape in it does") {
    auto name = [](const collective_call& second) {
      return pack({sum_of("a", {1, 2, 3, 4}), second}, 0).calls[0].name;
    };
    auto flat = sum_of("b", {3, 4, 5, 6});
    auto square = flat;
    for (auto& each : square.contributions)
      each = each.reshape({2, 2});
    CHECK(name(flat) == name(sum_of("b", {0, 0, 0, 0})));
    CHECK(name(flat) != name(square));
    CHECK(name(flat) != name(sum_of("c", {3, 4, 5, 6})));
  }

  TEST_CASE("the options of a call win over those of the group") {
    process_group group{.options = {.timeout_seconds = 3}, .timeout = std::chrono::seconds{60}};
    std::vector<collective_call> calls{sum_of("a", {1})};
    prepare(calls, group, {});
    CHECK(calls[0].timeout == std::chrono::seconds{3});
    CHECK(calls[0].fixed_order);
    CHECK(calls[0].algorithm == collective_algorithm::automatic);
    prepare(calls, group,
            {.timeout_seconds = 0.5, .implementation = communication_implementation::ring});
    CHECK(calls[0].timeout == std::chrono::milliseconds{500});
    CHECK_FALSE(calls[0].fixed_order); // a ring has an order of its own
    CHECK(calls[0].algorithm == collective_algorithm::ring);
    prepare(calls, group, {.timeout_seconds = 0});
    CHECK(calls[0].timeout == std::chrono::seconds{60});
    prepare(calls, group, {.implementation = communication_implementation::halving_doubling});
    CHECK(calls[0].algorithm == collective_algorithm::halving_doubling);
    prepare(calls, group, {.implementation = communication_implementation::tree});
    CHECK(calls[0].algorithm == collective_algorithm::tree);
  }

  TEST_CASE("options that cannot be are refused") {
    process_group group;
    std::vector<collective_call> calls{sum_of("a", {1})};
    auto refusal = [&](const communication_options& options) {
      return refusal_of([&] { prepare(calls, group, options); });
    };
    CHECK(refusal({.implementation = communication_implementation::nccl})
          == error{errc::unimplemented, "the communication implementation NCCL needs GPUs, and "
                                        "there is none here; choose AUTO or RING"});
    CHECK(refusal({.bytes_per_pack = -1})
          == error{errc::invalid_argument, "bytes_per_pack must be non-negative, not -1"});
    CHECK(refusal({.timeout_seconds = -1}).code == errc::invalid_argument);
  }
}

} // namespace process_group_test
