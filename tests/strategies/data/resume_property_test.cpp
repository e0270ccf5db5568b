// SPDX-License-Identifier: Apache-2.0
// Goal: whatever the stages, a dataset gives the elements that plain lists give, and one that was
// resumed anywhere gives what an uninterrupted one gives. Method: stages drawn by rapidcheck.
// RC_PARAMS="reproduce=..." runs a failed one again.
#include "messages/mapped.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"

#include <cstdlib>
#include <fmt/format.h>
#include <rapidcheck.h>

namespace resume_property_test {

using namespace troupe;

namespace {

using list = std::vector<std::string>;

/// A dataset, what plain lists make of the same stages, and its name. The lists cannot say what
/// comes out of a shuffle.
struct pipeline {
  dataset source;
  list expected;
  std::string name;
  bool is_ordered = true;
};

pipeline numbers() {
  const auto count = *rc::gen::inRange<int64_t>(0, 30);
  pipeline result{test::range(count), {}, fmt::format("range({})", count)};
  for (int64_t i = 0; i < count; ++i)
    result.expected.push_back(std::to_string(i));
  return result;
}

pipeline shuffled(const pipeline& from) {
  const auto buffer = *rc::gen::inRange<uint64_t>(1, 12);
  const auto seed = *rc::gen::inRange<uint64_t>(0, 100);
  const auto anew = *rc::gen::arbitrary<bool>();
  return {from.source.shuffle(buffer, seed, anew), from.expected,
          fmt::format("{}.shuffle({}, {}, {})", from.name, buffer, seed, anew), buffer == 1};
}

pipeline repeated(const pipeline& from) {
  const auto count = *rc::gen::inRange<uint64_t>(0, 4);
  list expected;
  for (uint64_t i = 0; i < count; ++i)
    expected.insert(expected.end(), from.expected.begin(), from.expected.end());
  return {from.source.repeat(count), expected, fmt::format("{}.repeat({})", from.name, count)};
}

pipeline sharded(const pipeline& from) {
  const auto shards = *rc::gen::inRange<uint64_t>(1, 5);
  const auto index = *rc::gen::inRange<uint64_t>(0, shards);
  list expected;
  for (auto i = index; i < from.expected.size(); i += shards)
    expected.push_back(from.expected[i]);
  return {from.source.shard(shards, index), expected,
          fmt::format("{}.shard({}, {})", from.name, shards, index)};
}

pipeline cut(const pipeline& from) {
  const auto begin = *rc::gen::inRange<uint64_t>(0, 8);
  const auto count = *rc::gen::inRange<uint64_t>(0, 40);
  list expected;
  for (auto i = begin; i < std::min<size_t>(begin + count, from.expected.size()); ++i)
    expected.push_back(from.expected[i]);
  return {from.source.skip(begin).take(count), expected,
          fmt::format("{}.skip({}).take({})", from.name, begin, count)};
}

pipeline zipped(const pipeline& from) {
  auto expected = mapped(from.expected, [](const auto& one) { return one + "," + one; });
  return {dataset::zip({from.source, from.source}), expected,
          fmt::format("zip({0}, {0})", from.name)};
}

pipeline doubled(const pipeline& from) {
  list expected = from.expected;
  expected.insert(expected.end(), from.expected.begin(), from.expected.end());
  return {from.source.concatenate(from.source), expected,
          fmt::format("{0}.concatenate({0})", from.name)};
}

pipeline numbered(const pipeline& from) {
  auto mapped = from.source.map(
    [](element one, const random_key& key) {
      if (random_stream{key}.below(4) == 0) return element{{test::numbers(1)}, {}};
      return one;
    },
    7);
  return {mapped, from.expected, from.name + ".map(random)", false};
}

pipeline read_ahead(const pipeline& from) {
  const auto count = *rc::gen::inRange<uint64_t>(1, 4);
  const executor at_once = [](const std::function<void()>& task) { task(); };
  return {from.source.prefetch(count, at_once), from.expected,
          fmt::format("{}.prefetch({})", from.name, count)};
}

pipeline with_another_stage(const pipeline& from) {
  using stage = pipeline (*)(const pipeline&);
  const auto add = *rc::gen::element<stage>(shuffled, repeated, sharded, cut, zipped, doubled,
                                            numbered, read_ahead);
  auto result = add(from);
  result.is_ordered = result.is_ordered && from.is_ordered;
  return result;
}

/// Batches, which the lists write as "[0 1 2]"; only of single numbers.
pipeline batched(const pipeline& from) {
  const auto n = *rc::gen::inRange<uint64_t>(1, 6);
  const auto drop = *rc::gen::arbitrary<bool>();
  list expected;
  for (size_t i = 0; i < from.expected.size(); ++i) {
    if (i % n == 0) expected.emplace_back("[");
    expected.back() += from.expected[i] + (i % n == n - 1 ? "]" : " ");
  }
  if (!expected.empty() && expected.back().back() == ' ') {
    expected.back().back() = ']';
    if (drop) expected.pop_back();
  }
  return {from.source.batch(n, drop), expected, fmt::format("{}.batch({}, {})", from.name, n, drop),
          from.is_ordered};
}

pipeline draw() {
  auto result = numbers();
  if (*rc::gen::arbitrary<bool>()) result = batched(result);
  for (auto stages = *rc::gen::inRange(0, 5); stages > 0; --stages)
    result = with_another_stage(result);
  return result;
}

} // namespace

TEST_SUITE("strategies/data/resume_property") {
  TEST_CASE("any stages give what lists give, and go on where they were") {
    // The same cases every time, unless the environment asks for others.
    setenv("RC_PARAMS", "seed=20161 max_success=500", 0);
    CHECK(rc::check("datasets resume", [] {
      const auto drawn = draw();
      RC_LOG() << drawn.name << '\n';
      RC_ASSERT(drawn.source.size() == drawn.expected.size());
      auto uninterrupted = drawn.source.iterate();
      const auto all = test::drain(uninterrupted, 5000);
      RC_ASSERT(all.size() == drawn.expected.size());
      if (drawn.is_ordered) RC_ASSERT(all == drawn.expected);

      const auto done = *rc::gen::inRange<size_t>(0, all.size() + 1);
      auto first = drawn.source.iterate();
      (void)test::drain(first, done);
      auto second = drawn.source.iterate();
      (void)test::drain(second, *rc::gen::inRange<size_t>(0, 10));
      RC_ASSERT(second.restore(first.position()));
      RC_ASSERT(test::drain(second, 5000)
                == list(all.begin() + static_cast<ptrdiff_t>(done), all.end()));
    }));
  }
}

} // namespace resume_property_test
