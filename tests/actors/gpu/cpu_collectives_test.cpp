// SPDX-License-Identifier: Apache-2.0
// Goal: devices of one process combine their arrays, and none goes on before all have come. Method:
// every kind, against what a plain loop makes of the same numbers; participants that stay away.
#include "actors/gpu/cpu_collectives.hpp"
#include "actors/gpu/cpu_device.hpp"
#include "tests/actors/collective/collective_group.hpp"

namespace cpu_collectives_test {

using namespace troupe;
using namespace troupe::test;

namespace {

/// Devices that have joined a group.
struct joined_devices {
  explicit joined_devices(uint32_t size) {
    auto id = library.make_id();
    REQUIRE(id);
    for (uint32_t rank = 0; rank < size; ++rank) {
      devices.push_back(std::make_unique<cpu_device>(static_cast<int>(rank)));
      auto one = library.join(*id, rank, size, *devices.back());
      REQUIRE(one);
      participants.push_back(std::move(*one));
    }
  }

  cpu_stream& stream(uint32_t rank) { return devices[rank]->stream(0); }

  /// Has one device ask for a collective. @returns The result on the host, once it is there.
  tensor ask(uint32_t rank, collective_kind kind, const tensor& value, const shape& extents,
             uint32_t root = 0) {
    auto input = stream(rank).to_device(value);
    auto output = stream(rank).make(value.type(), extents);
    const device_collective what[] = {{kind, *input, *output, root}};
    REQUIRE(participants[rank]->ask(what, stream(rank)));
    return *stream(rank).to_host(*output);
  }

  bool is_done(uint32_t rank) {
    auto done = std::make_shared<bool>(false); // the device may say so after this returns
    REQUIRE(devices[rank]->notify(0, [done] { *done = true; }));
    return *done;
  }

  cpu_collectives library;
  std::vector<std::unique_ptr<cpu_device>> devices;
  std::vector<std::unique_ptr<collective_participant>> participants;
};

constexpr dtype every_dtype[]
  = {dtype::f32, dtype::f64, dtype::f16, dtype::bf16, dtype::i32, dtype::i64};

} // namespace

TEST_SUITE("actors/gpu/cpu_collectives") {
  TEST_CASE("an all_reduce is the sum in the order of ranks, for every dtype and length") {
    for (auto type : every_dtype)
      for (uint32_t size : {1U, 2U, 5U})
        for (int64_t length : {1, 7, 1003}) {
          joined_devices group{size};
          std::vector<tensor> values;
          std::vector<tensor> results;
          for (uint32_t rank = 0; rank < size; ++rank) {
            values.push_back(sample(type, {length}, rank));
            results.push_back(
              group.ask(rank, collective_kind::all_reduce, values.back(), {length}));
          }
          for (const auto& result : results)
            CHECK(is_same(result, folded(values)));
        }
  }

  TEST_CASE("the other kinds share out, gather and spread") {
    joined_devices group{3};
    std::vector<tensor> scattered;
    std::vector<tensor> gathered;
    std::vector<tensor> spread;
    std::vector<tensor> values;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      values.push_back(sample(dtype::f32, {6}, rank));
      scattered.push_back(group.ask(rank, collective_kind::reduce_scatter, values[rank], {2}));
      gathered.push_back(group.ask(rank, collective_kind::all_gather, values[rank], {18}));
      spread.push_back(group.ask(rank, collective_kind::broadcast, values[rank], {6}, 2));
    }
    auto sum = folded(values);
    for (int64_t rank = 0; rank < 3; ++rank) {
      auto at = static_cast<size_t>(rank);
      CHECK(is_same(scattered[at], sum.slice(2 * rank, 2 * rank + 2)));
      for (int64_t other = 0; other < 3; ++other)
        CHECK(is_same(gathered[at].slice(6 * other, 6 * other + 6),
                      values[static_cast<size_t>(other)]));
      CHECK(is_same(spread[at], values[2]));
    }
  }

  TEST_CASE("several arrays are one collective, and results may lie where the values lay") {
    joined_devices group{2};
    std::vector<tensor> results;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      auto& stream = group.stream(rank);
      auto a = *stream.to_device(make_tensor({1}, {1.f + static_cast<float>(rank)}));
      auto b = *stream.to_device(make_tensor({2}, {10, 20}));
      const device_collective what[]
        = {{collective_kind::all_reduce, a, a}, {collective_kind::all_reduce, b, b}};
      REQUIRE(group.participants[rank]->ask(what, stream));
      results.push_back(*stream.to_host(a));
      results.push_back(*stream.to_host(b));
    }
    for (size_t rank = 0; rank < 2; ++rank) {
      CHECK(results[2 * rank].values<float>()[0] == 3);
      CHECK(results[2 * rank + 1].values<float>()[1] == 40);
    }
  }

  TEST_CASE("no stream goes on before the last participant has come") {
    joined_devices group{2};
    auto first = group.ask(0, collective_kind::all_reduce, make_tensor({1}, {1}), {1});
    CHECK_FALSE(group.is_done(0));
    auto second = group.ask(1, collective_kind::all_reduce, make_tensor({1}, {2}), {1});
    CHECK(group.is_done(0));
    CHECK(first.values<float>()[0] == 3);
    CHECK(second.values<float>()[0] == 3);
  }

  TEST_CASE("a group is ready when all have joined") {
    cpu_collectives library;
    cpu_device device{0};
    auto id = *library.make_id();
    auto first = library.join(id, 0, 2, device);
    CHECK((*first)->is_ready() == expected<bool>{false});
    auto second = library.join(id, 1, 2, device);
    CHECK((*first)->is_ready() == expected<bool>{true});
  }

  TEST_CASE("a participant that gives up goes on, the others wait until they give up, too") {
    joined_devices group{3};
    for (uint32_t rank : {0U, 1U})
      group.ask(rank, collective_kind::all_reduce, make_tensor({1}, {1}), {1});
    group.participants[0]->abort();
    CHECK(group.is_done(0));
    CHECK_FALSE(group.is_done(1));
    CHECK(group.participants[0]->is_ready().error().code == errc::unavailable);
    CHECK(group.participants[0]->ask({}, group.stream(0)).error().code == errc::unavailable);
    group.participants[1].reset();
    CHECK(group.is_done(1));
  }

  TEST_CASE("a group of another size, and a rank that is taken, are refused") {
    cpu_collectives library;
    cpu_device device{0};
    auto id = *library.make_id();
    auto first = library.join(id, 0, 2, device);
    REQUIRE(first);
    CHECK(library.join(id, 1, 3, device).error()
          == error{errc::invalid_argument, "a group of 2 devices cannot be joined as one of 3"});
    CHECK(library.join(id, 0, 2, device).error()
          == error{errc::invalid_argument, "the group has a device of rank 0"});
  }

  TEST_CASE("groups have nothing to do with each other") {
    cpu_collectives library;
    CHECK(*library.make_id() != *library.make_id());
  }
}

} // namespace cpu_collectives_test
