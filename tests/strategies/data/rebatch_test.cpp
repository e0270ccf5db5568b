// SPDX-License-Identifier: Apache-2.0
// Goal: global batches become batches for replicas as TensorFlow's rebatching does it. Method:
// small numbers, written out.
#include "strategies/data/batch_rows.hpp"
#include "strategies/data/rebatch.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <algorithm>

namespace rebatch_test {

TEST_SUITE("strategies/data/rebatch") {
  using namespace troupe;
  using test::line_of;
  using test::range;
  using sizes = std::vector<uint64_t>;

  TEST_CASE("each pipeline begins elsewhere in the list of sizes") {
    CHECK(batch_sizes_for_pipeline(10, 2, 2, 0) == sizes{3, 3, 2, 2});
    CHECK(batch_sizes_for_pipeline(10, 2, 2, 1) == sizes{2, 2, 3, 3});
    CHECK(batch_sizes_for_pipeline(8, 1, 4, 0) == sizes{2, 2, 2, 2});
    CHECK(batch_sizes_for_pipeline(2, 3, 1, 2) == sizes{0, 1, 1});
  }

  TEST_CASE(
    "all replicas of a step together take one global batch, and differ by one row at most") {
    for (uint64_t batch_size = 1; batch_size < 14; ++batch_size) {
      for (uint64_t step = 0; step < 3; ++step) {
        uint64_t sum = 0;
        for (uint64_t pipeline = 0; pipeline < 3; ++pipeline) {
          const auto list = batch_sizes_for_pipeline(batch_size, 3, 2, pipeline);
          CHECK(std::ranges::max(list) - std::ranges::min(list) <= 1);
          sum += list[step * 2] + list[step * 2 + 1];
        }
        CHECK(sum == batch_size);
      }
    }
  }

  TEST_CASE("refuses sizes for pipelines that are not there") {
    CHECK(test::refusal([] { return batch_sizes_for_pipeline(4, 2, 1, 2); })
          == "invalid_argument: rebatch: there is no pipeline 2 of 2, they count from 0");
    CHECK(
      test::refusal([] { return batch_sizes_for_pipeline(0, 2, 1, 0); })
      == "invalid_argument: rebatch: a global batch of 0 cannot be divided among pipelines of 1 "
         "replicas");
  }

  TEST_CASE("refuses negative numbers by their names, and sizes that are too large together") {
    const int64_t negative = -1;
    const auto count = static_cast<uint64_t>(negative);
    const auto half = uint64_t{1} << 62;
    const auto batches = range(4).batch(2);
    CHECK(test::refusal([&] {
            return rebatch(batches, {1, count});
          })
          == "invalid_argument: rebatch: sizes[1] is -1; it must not be negative");
    CHECK(test::refusal([&] {
            return rebatch(batches, {half, half});
          })
          == "invalid_argument: rebatch: the sizes are together 2^63 rows or more");
    CHECK(line_of(rebatch(batches, {half, half - 1})) == "[0 1 2 3]");
    CHECK(test::refusal([&] { return legacy_rebatch(batches, count); })
          == "invalid_argument: legacy_rebatch: pieces is -1; it must not be negative");
    CHECK(test::refusal([&] { return batch_sizes_for_pipeline(count, 2, 1, 0); })
          == "invalid_argument: rebatch: batch_size is -1; it must not be negative");
    CHECK(test::refusal([&] { return batch_sizes_for_pipeline(4, count, 1, 0); })
          == "invalid_argument: rebatch: pipelines is -1; it must not be negative");
    CHECK(test::refusal([&] { return batch_sizes_for_pipeline(4, 2, count, 0); })
          == "invalid_argument: rebatch: replicas_each is -1; it must not be negative");
  }

  TEST_CASE("cuts and joins across the batches of the input") {
    CHECK(line_of(rebatch(range(8).batch(4), {2, 2})) == "[0 1] [2 3] [4 5] [6 7]");
    CHECK(line_of(rebatch(range(10).batch(4), {3, 1})) == "[0 1 2] [3] [4 5 6] [7] [8 9]");
    CHECK(line_of(rebatch(range(8).batch(2), {5})) == "[0 1 2 3 4] [5 6 7]");
    CHECK(line_of(rebatch(range(8).batch(2), {5}, true)) == "[0 1 2 3 4]");
    CHECK(line_of(rebatch(range(7).batch(7), {1, 2}, true)) == "[0] [1 2] [3] [4 5] [6]");
    CHECK(line_of(rebatch(range(0).batch(4), {2})).empty());
    CHECK(rebatch(range(8).batch(4).repeat(), {3}).size() == dataset::infinite);
    CHECK(line_of(rebatch(range(5).batch(4).repeat(), {3}), 4)
          == "[0 1 2] [3 4 0] [1 2 3] [4 0 1]");
  }

  TEST_CASE("a piece of one batch is a view of it") {
    int reads = 0;
    const auto counted = range(8).batch(4).map([&reads](element one) {
      ++reads;
      return one;
    });
    CHECK(line_of(legacy_rebatch(counted, 4)) == "[0] [1] [2] [3] [4] [5] [6] [7]");
    CHECK(reads == 2);
    const auto table = test::numbers(4);
    const auto whole = dataset::from_tensors({table});
    auto iterator = legacy_rebatch(whole, 2).iterate();
    CHECK((*iterator.next())->tensors[0].data() == table.data());
  }

  TEST_CASE("a size of 0 gives a batch without rows, even behind the last row") {
    CHECK(line_of(rebatch(range(4).batch(2), {2, 0})) == "[0 1] [] [2 3] []");
    CHECK(line_of(rebatch(range(4).batch(2), {0, 2})) == "[] [0 1] [] [2 3] []");
    CHECK(line_of(rebatch(range(3).batch(3), {0, 2})) == "[] [0 1] [] [2] []");
    CHECK(line_of(rebatch(range(3).batch(3), {2, 0}, true)) == "[0 1] []");
    CHECK(line_of(rebatch(range(0).batch(2), {0, 2})).empty());
    const auto pairs = dataset::from_tensor_slices({test::numbers(4).reshape({2, 2})}).batch(2);
    auto iterator = rebatch(pairs, {0, 1}).iterate();
    CHECK((*iterator.next())->tensors[0].extents() == shape{0, 2});
  }

  TEST_CASE("finds smaller batches wherever other stages have put them") {
    const auto batches = range(10).batch(4);
    CHECK(line_of(rebatch(batches.repeat(2), {3}))
          == "[0 1 2] [3 4 5] [6 7 8] [9 0 1] [2 3 4] [5 6 7] [8 9]");
    CHECK(line_of(rebatch(batches.skip(1), {4})) == "[4 5 6 7] [8 9]");
    CHECK(line_of(rebatch(batches.take(2), {5})) == "[0 1 2 3 4] [5 6 7]");
    CHECK(line_of(rebatch(batches.repeat(2).shard(2, 0), {4})) == "[0 1 2 3] [8 9 4 5] [6 7]");
    CHECK(line_of(rebatch(batches.concatenate(batches), {7}))
          == "[0 1 2 3 4 5 6] [7 8 9 0 1 2 3] [4 5 6 7 8 9]");
    CHECK(line_of(rebatch(dataset::zip({batches, batches}).skip(2), {1})) == "[8],[8] [9],[9]");
    CHECK(line_of(rebatch(rebatch(batches, {3, 3}), {4})) == "[0 1 2 3] [4 5 6 7] [8 9]");
    const auto shuffled = rebatch(batches.shuffle(3, 1).repeat(2), {1});
    CHECK(shuffled.size() == 20);
    auto digits = line_of(shuffled.take(10));
    std::ranges::sort(digits);
    CHECK(digits == "         0123456789[[[[[[[[[[]]]]]]]]]]");
  }

  TEST_CASE("finds a row in a far pass without counting the passes before") {
    row_finder finder{batch_rows{range(10).batch(4).repeat()}};
    CHECK(finder.find(0, 3).batch == 0);
    const auto place = finder.find(0, 10'000'000'009);
    CHECK(place.batch == 3'000'000'002);
    CHECK(place.row_first == 10'000'000'008);
    CHECK(place.rows == 2);
    CHECK(finder.find(0, 9).batch == 2);
    CHECK(finder.find(1, 3).batch == 0);
  }

  TEST_CASE("finds the smaller batch in every pass, from any place of the pass before") {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const auto shuffled = range(10).batch(4).shuffle(3, seed);
      const auto passes = rebatch(shuffled, {1}).repeat(10);
      const auto one_pass = rebatch(shuffled.repeat(10), {1});
      CHECK(line_of(passes) == line_of(one_pass));
      CHECK(line_of(passes.shard(11, 0)) == line_of(one_pass.shard(11, 0)));
    }
  }

  TEST_CASE("cuts texts with their rows") {
    const auto named = range(3).map([](element one) {
      one.texts.push_back("row " + test::text_of(one));
      return one;
    });
    CHECK(line_of(rebatch(named.batch(3), {2})) == "[0 1],row 0,row 1 [2],row 2");
  }

  TEST_CASE("cuts the texts of a row together, whichever sides of a zip they came from") {
    const auto texts = [](const std::string& kind) {
      return range(4).map(
        [=](const element& one) { return element{.texts = {kind + test::text_of(one)}}; });
    };
    const auto lines = dataset::zip({texts("en").batch(4), texts("de").batch(4)});
    CHECK(line_of(legacy_rebatch(lines, 2)) == "en0,de0,en1,de1 en2,de2,en3,de3");
    CHECK(line_of(rebatch(lines, {2})) == "en0,de0,en1,de1 en2,de2,en3,de3");
    const auto same = [](element one) { return one; };
    const auto pairs = dataset::zip({texts("en"), texts("de")}).batch(3).map(same);
    CHECK(line_of(legacy_rebatch(pairs, 2)) == "en0,de0,en1,de1 en2,de2 en3,de3 ");
    const auto remade = [](const element& one) { return element{one.tensors, one.texts}; };
    const auto sides = dataset::zip(
      {texts("a").batch(4), dataset::zip({range(4), texts("b")}).batch(4).map(remade)});
    CHECK(line_of(legacy_rebatch(sides, 2)) == "[0 1],a0,b0,a1,b1 [2 3],a2,b2,a3,b3");
    const auto named = dataset::zip({range(4).batch(4), texts("a").batch(4), texts("b").batch(4)});
    CHECK(line_of(legacy_rebatch(named, 2)) == "[0 1],a0,b0,a1,b1 [2 3],a2,b2,a3,b3");
  }

  TEST_CASE("pieces of a batch are of equal size, then smaller, then without rows") {
    CHECK(line_of(legacy_rebatch(range(8).batch(4), 3)) == "[0 1] [2 3] [] [4 5] [6 7] []");
    CHECK(line_of(legacy_rebatch(range(10).batch(5), 2)) == "[0 1 2] [3 4] [5 6 7] [8 9]");
    CHECK(line_of(legacy_rebatch(range(5).batch(4), 2)) == "[0 1] [2 3] [4] []");
    CHECK(legacy_rebatch(range(4).batch(2).repeat(), 2).size() == dataset::infinite);
  }

  TEST_CASE("refuses what cannot be cut") {
    CHECK(test::refusal([] { return rebatch(range(4), {2}); })
          == "invalid_argument: rebatch: the elements are single examples: call batch() with the "
             "global batch size, so that each batch can be divided among the replicas");
    CHECK(
      test::refusal([] { return legacy_rebatch(range(4), 2); }).starts_with("invalid_argument: "));
    CHECK(test::refusal([] { return rebatch(range(4).batch(2), {}); })
          == "invalid_argument: rebatch: batches of 0 rows would never end");
    CHECK(test::refusal([] {
            return rebatch(range(4).batch(2), {0, 0});
          })
          == "invalid_argument: rebatch: batches of 0 rows would never end");
    CHECK(test::refusal([] { return legacy_rebatch(range(4).batch(2), 0); })
          == "invalid_argument: legacy_rebatch: a batch in 0 pieces is lost");
    CHECK(test::refusal([] { return rebatch(dataset::from_tensors({test::numbers(4)}), {2}); })
          == "invalid_argument: rebatch: the size of the batches is not known");
    CHECK(test::refusal([] { return rebatch(range(5).batch(2).shuffle(3, 1).take(2), {2}); })
          == "invalid_argument: rebatch: a shuffle decides whether the smaller batch is left out: "
             "drop the remainder in batch(), or shuffle before it");
    CHECK(line_of(legacy_rebatch(dataset::from_tensors({zeros({})}), 2).take(1))
          == "rebatch: a scalar has no rows to divide: call batch() before the dataset is divided "
             "among replicas");
  }
}

} // namespace rebatch_test
