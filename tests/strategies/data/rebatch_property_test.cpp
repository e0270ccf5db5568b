// SPDX-License-Identifier: Apache-2.0
// Goal: whatever batches come in, rebatching gives what a loop over them gives, and goes on where
// it was; and pipelines that divide a dataset use every row once. Method: batches drawn by
// rapidcheck, and the loop of TensorFlow's `rebatch_dataset_op.cc`. RC_PARAMS="reproduce=..." runs
// a failed one again.
#include "strategies/data/distributed_dataset.hpp"
#include "strategies/data/element_rows.hpp"
#include "strategies/data/file_list.hpp"
#include "strategies/data/rebatch.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <rapidcheck.h>

namespace rebatch_property_test {

using namespace troupe;

namespace {

using list = std::vector<std::string>;

/// Batches of numbers, and what was done to make them.
struct batches {
  dataset source;
  std::string name;
  bool is_shuffled = false;
};

batches with_another_stage(const batches& from) {
  const auto number = *rc::gen::inRange<uint64_t>(0, 6);
  switch (*rc::gen::inRange(0, 6)) {
  case 0:
    return {from.source.shuffle(number + 1, number), from.name + ".shuffle", true};
  case 1:
    return {from.source.repeat(number), fmt::format("{}.repeat({})", from.name, number),
            from.is_shuffled};
  case 2:
    return {from.source.concatenate(from.source), from.name + ".concatenate", from.is_shuffled};
  // A shuffle must not decide whether the smaller batch is left out.
  case 3:
    if (from.is_shuffled) return from;
    return {from.source.skip(number), fmt::format("{}.skip({})", from.name, number)};
  case 4:
    if (from.is_shuffled) return from;
    return {from.source.take(number * 3), fmt::format("{}.take({})", from.name, number * 3)};
  default:
    if (from.is_shuffled) return from;
    return {from.source.shard(number + 1, number), fmt::format("{}.shard({})", from.name, number)};
  }
}

batches draw() {
  const auto count = *rc::gen::inRange<int64_t>(0, 30);
  const auto n = *rc::gen::inRange<uint64_t>(1, 6);
  const auto drop = *rc::gen::arbitrary<bool>();
  batches result{test::range(count).batch(n, drop), fmt::format("range({}).batch({})", count, n)};
  for (auto stages = *rc::gen::inRange(0, 4); stages > 0; --stages)
    result = with_another_stage(result);
  return result;
}

std::vector<uint64_t> draw_sizes() {
  auto sizes = *rc::gen::container<std::vector<uint64_t>>(rc::gen::inRange<uint64_t>(0, 5));
  sizes.resize(std::min<size_t>(sizes.size(), 5));
  if (std::ranges::all_of(sizes, [](uint64_t size) { return size == 0; })) sizes.push_back(2);
  return sizes;
}

std::vector<int64_t> rows_in(const dataset& source) {
  std::vector<int64_t> rows;
  auto iterator = source.iterate();
  for (auto batch = *iterator.next(); batch; batch = *iterator.next()) {
    const auto values = batch->tensors[0].contiguous();
    rows.insert(rows.end(), values.values<int64_t>().begin(), values.values<int64_t>().end());
  }
  return rows;
}

list rebatched(const std::vector<int64_t>& rows, const std::vector<uint64_t>& sizes, bool drop) {
  list all;
  size_t row = 0;
  for (size_t turn = 0; !rows.empty(); ++turn) {
    const auto size = sizes[turn % sizes.size()];
    const auto end = std::min(row + size, rows.size());
    if ((size > 0 && row == end) || (drop && end - row < size)) break;
    all.push_back(fmt::format("[{}]", fmt::join(rows.begin() + static_cast<ptrdiff_t>(row),
                                                rows.begin() + static_cast<ptrdiff_t>(end), " ")));
    row = end;
  }
  return all;
}

} // namespace

TEST_SUITE("strategies/data/rebatch_property") {
  TEST_CASE("gives what a loop over the batches gives, and goes on where it was") {
    setenv("RC_PARAMS", "seed=20162 max_success=500", 0);
    CHECK(rc::check("datasets rebatch", [] {
      const auto drawn = draw();
      const auto sizes = draw_sizes();
      const auto drop = *rc::gen::arbitrary<bool>();
      RC_LOG() << fmt::format("{} -> [{}]\n", drawn.name, fmt::join(sizes, " "));
      const auto result = rebatch(drawn.source, sizes, drop);
      auto uninterrupted = result.iterate();
      const auto all = test::drain(uninterrupted, 10'000);
      RC_ASSERT(all == rebatched(rows_in(drawn.source), sizes, drop));
      RC_ASSERT(result.size() == all.size());

      const auto done = *rc::gen::inRange<size_t>(0, all.size() + 1);
      auto resumed = result.iterate();
      (void)test::drain(resumed, *rc::gen::inRange<size_t>(0, 10));
      RC_ASSERT(
        resumed.restore(test::place(static_cast<int64_t>(done), static_cast<int64_t>(all.size()))));
      RC_ASSERT(test::drain(resumed, 10'000)
                == list(all.begin() + static_cast<ptrdiff_t>(done), all.end()));
    }));
  }

  TEST_CASE("pipelines that divide a dataset use every row once, in equally many steps") {
    setenv("RC_PARAMS", "seed=20162 max_success=500", 0);
    CHECK(rc::check("datasets divide", [] {
      std::vector<dataset> files;
      int64_t count = 0;
      for (auto left = *rc::gen::inRange(1, 5); left > 0; --left) {
        const auto rows = *rc::gen::inRange<int64_t>(0, 12);
        files.push_back(test::range(rows, count));
        count += rows;
      }
      const auto policy = *rc::gen::element(auto_shard_policy::automatic, auto_shard_policy::data);
      const auto pipelines = *rc::gen::inRange<uint64_t>(1, 4);
      const auto replicas = pipelines * *rc::gen::inRange<uint64_t>(1, 4);
      const auto source = files_in_turn(files).batch(*rc::gen::inRange<uint64_t>(1, 9));
      std::vector<int64_t> used;
      std::vector<uint64_t> steps;
      for (uint64_t i = 0; i < pipelines; ++i) {
        const auto part
          = distribute(source, {.context = {pipelines, i, replicas}, .policy = policy});
        steps.push_back(part.steps());
        auto iterator = part.iterate();
        for (auto step = *iterator.next(); step; step = *iterator.next()) {
          RC_ASSERT(step->size() == replicas / pipelines);
          for (const auto& one : *step)
            for (auto number : one.tensors[0].contiguous().values<int64_t>())
              used.push_back(number);
        }
      }
      std::ranges::sort(used);
      std::vector<int64_t> expected(static_cast<size_t>(count));
      std::iota(expected.begin(), expected.end(), 0);
      RC_ASSERT(used == expected);
      RC_ASSERT(std::ranges::count(steps, steps.front()) == static_cast<ptrdiff_t>(pipelines));
    }));
  }
}

} // namespace rebatch_property_test
