// SPDX-License-Identifier: Apache-2.0
// Goal: every plan adds up what it should, for any number of ranks and elements, whatever comes
// first, and however few strands are under way. Method: a plain loop carries plans out on arrays of
// texts, so that order shows.
#include "actors/collective/collective_agreement.hpp"
#include "actors/collective/collective_plan.hpp"
#include "tests/doctest.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace collective_plan_test {

using namespace troupe;

namespace {

using enum step_action;
using text_array = std::vector<std::string>;

// Everything between ranks; by sender, receiver, strand, begin and kind of content.
enum class content { own, partial, result };
using postmark = std::tuple<uint32_t, uint32_t, size_t, uint64_t, content>;
using post_office = std::map<postmark, std::deque<text_array>>;

content content_of(step_action action) {
  if (action == send_own || action == keep_own) return content::own;
  return action == send_result || action == copy_result ? content::result : content::partial;
}

// A rank that carries out its plan; element i of rank r is the text "r".
struct player {
  group_place place;
  collective_plan plan;
  text_array partial;
  text_array result;
  std::vector<text_array> kept{};
  std::vector<size_t> next{};

  player(group_place where, collective_plan what, uint64_t elements)
    : place(where), plan(std::move(what)), partial(elements, std::to_string(where.rank)),
      result(elements), kept(where.size, text_array(elements)), next(plan.strands.size()) {}

  void send(post_office& post, size_t strand, const plan_step& step) {
    const auto& from = step.action == send_result ? result : partial;
    auto at = [](uint64_t i) { return static_cast<std::ptrdiff_t>(i); };
    text_array some(from.begin() + at(step.range.begin), from.begin() + at(step.range.end));
    for (uint32_t rank = 0; rank < place.size; ++rank)
      if (rank != place.rank && (step.peer == rank || step.peer == everybody))
        post[{place.rank, rank, strand, step.range.begin, content_of(step.action)}].push_back(some);
  }

  void use(const plan_step& step, const text_array& came) {
    REQUIRE(came.size() == step.range.count());
    for (size_t i = 0; i < came.size(); ++i) {
      auto at = step.range.begin + i;
      if (step.action == add) partial[at] = came[i] + partial[at];
      if (step.action == add_last) result[at] = came[i] + partial[at];
      if (step.action == copy_result) result[at] = came[i];
      if (step.action == keep_own) kept[step.peer][at] = came[i];
    }
  }

  void sum(element_range range) {
    for (auto i = range.begin; i < range.end; ++i)
      for (uint32_t rank = 0; rank < place.size; ++rank)
        result[i] += rank == place.rank ? partial[i] : kept[rank][i];
  }

  // Whether as many strands before it are done as have to be.
  [[nodiscard]] bool may_begin(size_t strand) const {
    size_t done = 0;
    for (size_t i = 0; i < strand; ++i)
      if (next[i] == plan.strands[i].size()) ++done;
    return strand < done + plan.strands_at_once;
  }

  // Does one step of a strand, if it can.
  bool act(post_office& post, size_t strand) {
    if (next[strand] == plan.strands[strand].size() || !may_begin(strand)) return false;
    const auto& step = plan.strands[strand][next[strand]];
    if (is_receiving(step.action)) {
      auto found
        = post.find({step.peer, place.rank, strand, step.range.begin, content_of(step.action)});
      if (found == post.end()) return false;
      use(step, found->second.front());
      found->second.pop_front();
      if (found->second.empty()) post.erase(found);
    } else if (step.action == sum_kept) {
      sum(step.range);
    } else {
      send(post, strand, step);
    }
    ++next[strand];
    return true;
  }
};

using planner = std::function<collective_plan(group_place, uint64_t, plan_grain)>;

// Every player's result. Fails the test if a player waits for ever, or is sent what it does not
// want.
// @param root Has its own for a result, if it is a rank.
std::vector<text_array> play(const planner& make, uint32_t size, uint64_t elements,
                             plan_grain grain, uint32_t root = everybody) {
  std::vector<player> players;
  for (uint32_t rank = 0; rank < size; ++rank) {
    players.emplace_back(group_place{rank, size}, make({rank, size}, elements, grain), elements);
    if (rank == root) players.back().result = players.back().partial;
  }
  post_office post;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (auto& one : players) // each as far as it can, the last strand first
      for (auto strand = one.plan.strands.size(); strand-- > 0;)
        while (one.act(post, strand))
          goes_on = true;
  }
  CHECK(post.empty());
  std::vector<text_array> results;
  for (auto& one : players) {
    CHECK(one.plan.strands.size() == players[0].plan.strands.size());
    for (size_t strand = 0; strand < one.plan.strands.size(); ++strand)
      CHECK(one.next[strand] == one.plan.strands[strand].size());
    results.push_back(std::move(one.result));
  }
  return results;
}

std::string in_order(uint32_t size) {
  std::string text;
  for (uint32_t rank = 0; rank < size; ++rank)
    text += std::to_string(rank);
  return text;
}

constexpr plan_grain grains[] = {{1000, 1}, {3, 1}, {8, 4}, {16, 16}};
constexpr uint64_t lengths[] = {1, 2, 7, 31, 64, 129};

void for_all_groups(uint32_t least,
                    const std::function<void(uint32_t, uint64_t, plan_grain)>& body) {
  for (uint32_t size = least; size <= 9; ++size)
    for (auto elements : lengths)
      for (auto grain : grains) {
        CAPTURE(size);
        CAPTURE(elements);
        CAPTURE(grain.segment_elements);
        body(size, elements, grain);
      }
}

void check_sum(uint32_t least, bool is_ordered, const planner& make) {
  for_all_groups(least, [&](uint32_t size, uint64_t elements, plan_grain grain) {
    auto results = play(make, size, elements, grain);
    for (const auto& result : results)
      CHECK(result == results[0]);
    auto one_strand_at_a_time = [&](group_place place, uint64_t n, plan_grain g) {
      auto plan = make(place, n, g);
      plan.strands_at_once = 1;
      return plan;
    };
    CHECK(play(one_strand_at_a_time, size, elements, grain) == results);
    auto sum = results[0];
    if (!is_ordered)
      for (auto& text : sum)
        std::ranges::sort(text);
    CHECK(sum == text_array(elements, in_order(size)));
  });
}

void check_broadcast(
  const std::function<collective_plan(group_place, uint32_t, uint64_t, plan_grain)>& make) {
  for_all_groups(1, [&](uint32_t size, uint64_t elements, plan_grain grain) {
    for (uint32_t root : {0U, size / 2, size - 1}) {
      auto from_root
        = [&](group_place place, uint64_t n, plan_grain g) { return make(place, root, n, g); };
      for (const auto& result : play(from_root, size, elements, grain, root))
        CHECK(result == text_array(elements, std::to_string(root)));
    }
  });
}

// As an all_reduce; slices even.
collective_plan all_to_all(group_place place, uint64_t elements, plan_grain grain) {
  return plan_all_to_all(place, even_cuts(elements, place.size, grain.aligned_elements), grain,
                         true);
}

} // namespace

TEST_SUITE("actors/collective/collective_plan") {
  TEST_CASE("directly, all ranks get the sum in their order") {
    check_sum(1, true, plan_direct);
  }

  TEST_CASE("by slices, all ranks get the sum in their order") {
    check_sum(1, true, all_to_all);
  }

  TEST_CASE("where some ranks have no slice, all ranks get the sum in their order") {
    auto plan = [](group_place place, uint64_t elements, plan_grain) {
      return plan_of({.kind = collective_kind::all_reduce,
                      .algorithm = collective_algorithm::all_to_all,
                      .dtype = static_cast<uint8_t>(dtype::f32),
                      .contributions = 1,
                      .extents = {static_cast<int64_t>(elements)}},
                     place);
    };
    for (uint32_t size : {4U, 5U, 9U})
      for (uint64_t elements : {1U, 16'384U, 24'577U})
        for (const auto& result : play(plan, size, elements, {}))
          CHECK(result == text_array(elements, in_order(size)));
  }

  TEST_CASE("along a chain, all ranks get the sum in their order") {
    check_sum(2, true, plan_chain);
  }

  TEST_CASE("round a ring, all ranks get the same sum") {
    check_sum(2, false, plan_ring);
  }

  TEST_CASE("by halving and doubling, all ranks get the same sum") {
    check_sum(2, false, plan_halving_doubling);
  }

  TEST_CASE("up and down a tree, all ranks get the same sum") {
    check_sum(2, false, plan_tree);
  }

  TEST_CASE("a broadcast takes the root's value to all, for each rank as root") {
    check_broadcast(plan_direct_broadcast);
    check_broadcast(plan_tree_broadcast);
    check_broadcast(plan_chain_broadcast);
  }

  TEST_CASE("each rank sums up its slice alone, if nothing is spread") {
    for_all_groups(1, [](uint32_t size, uint64_t elements, plan_grain grain) {
      auto cuts = even_cuts(elements, size, 1);
      auto scatter = [&](group_place place, uint64_t, plan_grain g) {
        return plan_all_to_all(place, cuts, g, false);
      };
      auto results = play(scatter, size, elements, grain);
      for (uint32_t rank = 0; rank < size; ++rank)
        for (uint64_t i = 0; i < elements; ++i) {
          auto is_own = cuts[rank] <= i && i < cuts[rank + 1];
          CHECK(results[rank][i] == (is_own ? in_order(size) : ""));
        }
    });
  }

  TEST_CASE("a slice of two of three rows is one row longer") {
    CHECK(rows_of({0, 2}, 3) == element_range{0, 2});
    CHECK(rows_of({1, 2}, 3) == element_range{2, 3});
    CHECK(rows_of({2, 3}, 2) == element_range{2, 2});
  }

  TEST_CASE("cuts cover an array of any length, at multiples") {
    CHECK(even_cuts(10, 3, 1) == std::vector<uint64_t>{0, 3, 6, 10});
    CHECK(even_cuts(10, 3, 4) == std::vector<uint64_t>{0, 0, 4, 10});
    CHECK(even_cuts(uint64_t{1} << 63, 4, 16)
          == std::vector<uint64_t>{0, uint64_t{1} << 61, uint64_t{1} << 62, uint64_t{3} << 61,
                                   uint64_t{1} << 63});
  }

  TEST_CASE("no rank sends more than its algorithm says") {
    auto sent = [](const collective_plan& plan) {
      uint64_t elements = 0;
      for (const auto& strand : plan.strands)
        for (const auto& step : strand)
          if (!is_receiving(step.action) && step.action != sum_kept)
            elements += step.range.count() * (step.peer == everybody ? 3 : 1);
      return elements;
    };
    CHECK(sent(plan_direct({1, 4}, 400, {100, 1})) == 1200);
    CHECK(sent(all_to_all({1, 4}, 400, {100, 1})) == 600);
    CHECK(sent(plan_chain({1, 4}, 400, {100, 1})) == 800);
    CHECK(sent(plan_ring({1, 4}, 400, {100, 1})) == 600);
    CHECK(sent(plan_halving_doubling({1, 4}, 400, {100, 1})) == 600);
    CHECK(sent(plan_tree({0, 4}, 400, {100, 1})) == 800);
  }
}

} // namespace collective_plan_test
