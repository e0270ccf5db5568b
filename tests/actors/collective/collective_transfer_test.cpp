// SPDX-License-Identifier: Apache-2.0
// Goal: parts may come in any order, and twice; what no peer could have meant is refused. Method:
// one transfer, and parts made by hand.
#include "actors/collective/collective_agreement.hpp"
#include "actors/collective/collective_transfer.hpp"
#include "kernels/tensor/change.hpp"
#include "tests/doctest.hpp"

#include <algorithm>

namespace collective_transfer_test {

using namespace troupe;

namespace {

tensor filled_floats(int64_t count, double value) {
  return filled(dtype::f32, {count}, value);
}

// Rank 0 of three, in an all_reduce.
struct first_of_three {
  explicit first_of_three(collective_algorithm algorithm, bool fixed_order = true,
                          int64_t count = 6)
    : transfer(place, meaning(algorithm, fixed_order, count), {filled_floats(count, 1)}) {
    transfer.begin(send());
  }

  static collective_meaning meaning(collective_algorithm algorithm, bool fixed_order,
                                    int64_t count) {
    collective_call call{.kind = collective_kind::all_reduce,
                         .name = "a",
                         .contributions = {filled_floats(count, 1)},
                         .algorithm = algorithm,
                         .fixed_order = fixed_order};
    return meaning_of(call, place).value();
  }

  collective_transfer::send_function send() {
    return
      [this](uint32_t peer, collective_part part) { sent.emplace_back(peer, std::move(part)); };
  }

  expected<void> take(collective_part part) { return transfer.take(std::move(part), send()); }

  // The part that a rank sends of its own, in the direct way.
  static collective_part own(uint32_t rank, double value, int64_t count = 6) {
    return {.rank = rank, .stage = collective_stage::own, .values = {filled_floats(count, value)}};
  }

  static constexpr group_place place{0, 3};
  std::vector<std::pair<uint32_t, collective_part>> sent;
  collective_transfer transfer;
};

void check_refused(first_of_three& three, collective_part part, const std::string& why) {
  auto taken = three.take(std::move(part));
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == errc::malformed);
  CHECK(taken.error().message == why);
  CHECK_FALSE(three.transfer.is_done());
}

} // namespace

TEST_SUITE("actors/collective/collective_transfer") {
  TEST_CASE("parts may come in any order, and again") {
    first_of_three three{collective_algorithm::direct};
    CHECK(three.transfer.needs(1));
    CHECK(three.transfer.needs(2));
    CHECK(three.take(three.own(2, 4)));
    CHECK(three.take(three.own(2, 5)));
    CHECK_FALSE(three.transfer.needs(2));
    CHECK(three.take(three.own(1, 2)));
    REQUIRE(three.transfer.is_done());
    CHECK(three.take(three.own(1, 2)));
    CHECK(three.transfer.result().values<float>()[5] == 7);
  }

  TEST_CASE("what is the same for all is sent as one") {
    first_of_three three{collective_algorithm::direct};
    REQUIRE(three.sent.size() == 1);
    CHECK(three.sent[0].first == everybody);
    CHECK(three.sent[0].second.values.size() == 1);
  }

  TEST_CASE("own elements are sent where they lie") {
    auto own = filled_floats(1000, 1);
    collective_transfer transfer{first_of_three::place,
                                 first_of_three::meaning(collective_algorithm::chain, true, 1000),
                                 {own}};
    std::vector<collective_part> sent;
    transfer.begin([&](uint32_t, collective_part part) { sent.push_back(std::move(part)); });
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].values[0].data() == own.data());
  }

  TEST_CASE("a result that was read to its place is taken as it lies") {
    first_of_three three{collective_algorithm::all_to_all, true, 120'000};
    std::vector<std::pair<collective_part_key, array_place>> awaited;
    three.transfer.for_awaited_results([&](collective_part_key part, array_place place) {
      awaited.emplace_back(part, std::move(place));
    });
    REQUIRE(awaited.size() == 2);
    for (auto rank : {1U, 2U})
      CHECK(three.take(three.own(rank, 1, 40'000)));
    for (auto& [part, place] : awaited) {
      auto memory = tensor::wrap(place.memory.data(), dtype::f32, {40'000}, place.owner);
      std::ranges::fill(memory.mutable_values<float>(), 3.5F);
      CHECK(three.take({.rank = part.rank,
                        .stage = collective_stage::result,
                        .strand = part.strand,
                        .begin = part.begin,
                        .values = {memory}}));
    }
    REQUIRE(three.transfer.is_done());
    auto result = three.transfer.result();
    CHECK(result.values<float>().front() == 3);
    CHECK(result.values<float>().back() == 3.5);
  }

  TEST_CASE("a long array is under way in a few strands at a time") {
    first_of_three three{collective_algorithm::direct, true, 4'000'000};
    CHECK(three.sent.size() == 4);
  }

  TEST_CASE("a part that its sender could not mean is refused, and says why") {
    first_of_three three{collective_algorithm::direct};
    auto part = three.own(1, 2);
    part.strand = 1;
    check_refused(three, part, "a part of strand 1 of 1");
    part = three.own(1, 2);
    part.begin = 2;
    check_refused(three, part,
                  "a part that no step waits for: elements from 2 on, stage 1, strand 0");
    part = three.own(1, 2);
    part.stage = collective_stage::result;
    check_refused(three, part,
                  "a part that no step waits for: elements from 0 on, stage 3, strand 0");
    check_refused(three, three.own(1, 2, 5), "a part of 20 bytes of dtype 0, not 24 bytes of f32");
    part = three.own(1, 2);
    part.values.clear();
    check_refused(three, part, "a part of 0 arrays instead of 1");
    part = three.own(1, 2);
    part.values[0] = zeros({6}, dtype::i32);
    check_refused(three, part, "a part of 24 bytes of dtype 4, not 24 bytes of f32");
    part = three.own(1, 2);
    part.begin = UINT64_MAX;
    CHECK_FALSE(three.take(part));
    part = three.own(0, 2);
    CHECK_FALSE(three.take(part));
  }

  TEST_CASE("contributions that are not what they were said to be are refused in an all_gather") {
    collective_call call{.kind = collective_kind::all_gather,
                         .name = "rows",
                         .contributions = {filled(dtype::f32, {2, 3}, 1)}};
    group_place place{0, 2};
    collective_transfer transfer{place, meaning_of(call, place).value(), call.contributions};
    auto say_nothing = [](uint32_t, const collective_part&) {};
    transfer.begin(say_nothing);
    auto give = [&](const tensor& value) {
      return transfer.take({.rank = 1, .stage = collective_stage::own, .values = {value}},
                           say_nothing);
    };
    CHECK_FALSE(give(filled(dtype::f32, {2, 4}, 1)));
    CHECK_FALSE(give(filled(dtype::i32, {2, 3}, 1)));
    CHECK_FALSE(give(filled(dtype::f32, {6}, 1)));
    CHECK(give(filled(dtype::f32, {1, 3}, 1)));
    CHECK(transfer.result().extents() == shape{3, 3});
  }
}

} // namespace collective_transfer_test
