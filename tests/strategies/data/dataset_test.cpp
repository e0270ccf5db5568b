// SPDX-License-Identifier: Apache-2.0
// Goal: each stage gives the elements that TensorFlow's stage of that name gives, and bad numbers
// are refused. Method: ranges of numbers, written out.
#include "messages/errors/failure.hpp"
#include "strategies/data/dataset.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace dataset_test {

TEST_SUITE("strategies/data/dataset") {
  using namespace troupe;
  using test::line_of;
  using test::range;

  template <class Call>
  std::string refusal(const Call& call) {
    try {
      (void)call();
    } catch (const failure& failed) {
      CHECK(failed.reason().code == errc::invalid_argument);
      return failed.what();
    }
    return "accepted";
  }

  TEST_CASE("gives the rows of tensors, without a copy") {
    const auto table = test::numbers(6).reshape({3, 2});
    const auto rows = dataset::from_tensor_slices({table, test::numbers(3, 10)});
    CHECK(rows.size() == 3);
    CHECK(line_of(rows) == "[0 1],10 [2 3],11 [4 5],12");
    auto iterator = rows.iterate();
    const auto first = iterator.next();
    CHECK((*first)->tensors[0].data() == table.data());
    CHECK((*first)->tensors[0].read_only());
    CHECK(line_of(dataset::from_tensor_slices({table.transpose()})) == "[0 2 4] [1 3 5]");
    CHECK(line_of(dataset::from_tensors({table})) == "[0 1 2 3 4 5]");
    CHECK(refusal([] { return dataset::from_tensor_slices({}); })
          == "from_tensor_slices: there is no tensor");
    CHECK(refusal([] { return dataset::from_tensor_slices({zeros({})}); })
          == "from_tensor_slices: a scalar has no rows");
    CHECK(refusal([] {
            return dataset::from_tensor_slices({zeros({2}), zeros({3})});
          })
          == "from_tensor_slices: tensors of 2 and 3 rows");
  }

  TEST_CASE("refuses an empty function") {
    CHECK(refusal([] {
            return dataset{2, std::function<element_reader()>{}};
          })
          == "a dataset needs a function that opens it; it was given an empty one");
    CHECK(refusal([] { return range(2).map(std::function<element(element)>{}); })
          == "map: the function is empty");
    std::function<element(element, const random_key&)> drawing;
    CHECK(refusal([&] { return range(2).map(drawing, 1); }) == "map: the function is empty");
  }

  TEST_CASE("takes, skips, shards and concatenates") {
    CHECK(line_of(range(5).take(2)) == "0 1");
    CHECK(line_of(range(5).take(9)) == "0 1 2 3 4");
    CHECK(line_of(range(5).skip(2)) == "2 3 4");
    CHECK(line_of(range(5).skip(9)).empty());
    CHECK(line_of(range(5).take(UINT64_MAX)) == "0 1 2 3 4"); // -1, as in TensorFlow
    CHECK(range(5).skip(UINT64_MAX).size() == 0);
    CHECK(range(5).repeat().skip(UINT64_MAX).size() == 0);
    CHECK(line_of(range(7).shard(3, 0)) == "0 3 6");
    CHECK(line_of(range(7).shard(3, 2)) == "2 5");
    CHECK(line_of(range(2).shard(3, 2)).empty());
    CHECK(range(2).shard(3, 2).size() == 0);
    CHECK(line_of(range(2).concatenate(range(2, 7))) == "0 1 7 8");
    CHECK(refusal([] { return range(2).shard(2, 2); })
          == "shard: there is no shard 2 of 2, they count from 0");
    CHECK(refusal([] { return range(2).repeat().concatenate(range(2)); })
          == "concatenate: nothing comes after a dataset without end");
  }

  TEST_CASE("batches") {
    CHECK(line_of(range(5).batch(2)) == "[0 1] [2 3] [4]");
    CHECK(line_of(range(5).batch(2, true)) == "[0 1] [2 3]");
    CHECK(line_of(range(4).batch(2).batch(2)) == "[0 1 2 3]");
    CHECK(line_of(range(0).batch(2)).empty());
    CHECK(range(5).batch(INT64_MAX).size() == 1);
    CHECK(refusal([] { return range(5).batch(0); }) == "batch: a batch of 0 elements is none");
    CHECK(line_of(range(2).concatenate(range(4).batch(2)).batch(3))
          == "batch: tensor 0 of element 2 of the batch is i64 [2], of the first i64 []: make them "
             "alike with map() [2 3]");
  }

  TEST_CASE("a negative count is refused by the name of its argument") {
    const int64_t negative = -1;
    const auto count = static_cast<uint64_t>(negative);
    CHECK(refusal([&] { return range(5).batch(count); })
          == "batch: n is -1; it must not be negative");
    CHECK(refusal([&] { return range(5).shuffle(count, 1); })
          == "shuffle: buffer_size is -1; it must not be negative");
    CHECK(refusal([&] { return range(5).shard(count, 0); })
          == "shard: num_shards is -1; it must not be negative");
    CHECK(refusal([&] { return range(5).shard(2, count); })
          == "shard: index is -1; it must not be negative");
    CHECK(refusal([&] { return range(5).prefetch(count); })
          == "prefetch: count is -1; it must not be negative");
  }

  TEST_CASE("repeats") {
    CHECK(line_of(range(2).repeat(3)) == "0 1 0 1 0 1");
    CHECK(line_of(range(2).repeat(0)).empty());
    CHECK(range(2).repeat().size() == dataset::infinite);
    CHECK(line_of(range(2).repeat(), 5) == "0 1 0 1 0");
    CHECK(range(0).repeat().size() == 0);
    CHECK(range(3).repeat(UINT64_MAX / 2).size() == dataset::infinite);
    CHECK(line_of(range(3).repeat().batch(2).skip(1).shard(2, 0).take(2)) == "[2 0] [0 1]");
  }

  TEST_CASE("deals the elements anew in every pass, where a shard follows the passes") {
    std::set<std::string> read; // by three of four replicas
    for (uint64_t replica : {0, 1, 3}) {
      std::istringstream share{line_of(range(100).shuffle(100, 7).repeat(12).shard(4, replica))};
      read.insert(std::istream_iterator<std::string>{share}, {});
    }
    CHECK(read.size() == 100);
  }

  TEST_CASE("zips until the shortest ends") {
    CHECK(line_of(dataset::zip({range(3), range(2, 5), range(1).repeat()})) == "0,5,0 1,6,0");
    CHECK(refusal([] { return dataset::zip({}); }) == "zip: there is no dataset");
  }

  TEST_CASE("shuffles every pass anew, if not told otherwise") {
    const auto anew = line_of(range(8).shuffle(8, 1).repeat(2));
    const auto alike = line_of(range(8).shuffle(8, 1, false).repeat(2));
    CHECK(anew.substr(0, 15) != anew.substr(16));
    CHECK(alike.substr(0, 15) == alike.substr(16));
    CHECK(anew.substr(0, 15) == alike.substr(0, 15));
    CHECK(line_of(range(8).shuffle(1, 1)) == "0 1 2 3 4 5 6 7");
    auto digits = anew.substr(0, 15);
    std::ranges::sort(digits);
    CHECK(digits == "       01234567");
    CHECK(refusal([] { return range(8).shuffle(0, 1); })
          == "shuffle: a buffer of 0 elements gives none");
  }

  TEST_CASE("passes within passes have orders of their own") {
    const auto line = line_of(range(6).shuffle(6, 1).repeat(2).repeat(2));
    std::vector<std::string> passes;
    for (size_t begin = 0; begin < line.size(); begin += 12)
      passes.push_back(line.substr(begin, 11));
    CHECK(passes.size() == 4);
    std::ranges::sort(passes);
    CHECK(std::ranges::adjacent_find(passes) == passes.end());
  }

  TEST_CASE("maps, and tells what the function threw") {
    const auto doubled = range(3).map([](element one) {
      auto value = one.tensors[0].clone();
      value.mutable_values<int64_t>()[0] *= 2;
      return element{{value}, {}};
    });
    CHECK(line_of(doubled) == "0 2 4");
    const auto throwing = range(3).map([](element one) -> element {
      switch (one.tensors[0].values<int64_t>()[0]) {
      case 0:
        throw failure{error{errc::not_found, "no such\nthing"}};
      case 1:
        throw std::runtime_error{"worse \x1b[2J"};
      default:
        throw 7;
      }
    });
    auto iterator = throwing.iterate();
    CHECK(iterator.next().error() == error{errc::not_found, "no such thing"});
    CHECK(iterator.next().error() == error{errc::user_code, "map: the function threw: worse ?[2J"});
    CHECK(iterator.next().error()
          == error{errc::user_code, "map: the function threw something unknown"});
    CHECK(iterator.next() == std::nullopt);
  }

  TEST_CASE("gives each element and pass random numbers of its own") {
    const auto noisy = range(2)
                         .map(
                           [](element one, const random_key& key) {
                             auto word = random_stream{key}.next_u32();
                             one.texts.push_back(std::to_string(word));
                             return one;
                           },
                           5)
                         .repeat(2);
    auto iterator = noisy.iterate();
    auto words = test::drain(iterator);
    CHECK(line_of(noisy) == line_of(noisy));
    for (auto& word : words)
      word = word.substr(2);
    std::ranges::sort(words);
    CHECK(std::ranges::adjacent_find(words) == words.end());
  }

  TEST_CASE("knows its position, and goes there") {
    const auto source = range(10).shuffle(5, 3).batch(3).repeat();
    auto first = source.iterate();
    (void)test::drain(first, 5);
    CHECK(test::text_of({{first.position()}, {}}) == "[5 -1 0]");
    auto second = source.iterate();
    REQUIRE(second.restore(first.position()));
    CHECK(test::drain(first, 20) == test::drain(second, 20));
    auto end = range(2).iterate();
    REQUIRE(end.restore(test::place(2, 2)));
    CHECK(end.next() == std::nullopt);
  }

  TEST_CASE("refuses what is no position of its own") {
    auto iterator = range(3).iterate();
    const auto refused = iterator.restore(test::place(1, 4));
    CHECK(refused.error().code == errc::invalid_argument);
    CHECK(refused.error().message
          == "restore: the position is one in a dataset of 4 elements, this one has 3: the data or "
             "the stages have changed");
    CHECK_FALSE(iterator.restore(zeros({2})));
    CHECK_FALSE(iterator.restore(test::numbers(3)));
    CHECK_FALSE(iterator.restore(test::place(4, 3)));
    CHECK_FALSE(iterator.restore(test::place(-1, 3)));
    auto endless = range(3).repeat().batch(3).iterate();
    for (auto delivered : {int64_t{-1}, INT64_MIN, INT64_MAX, (int64_t{1} << 53) + 1})
      CHECK_FALSE(endless.restore(test::place(delivered, -1)));
    CHECK(endless.restore(test::place(int64_t{1} << 53, -1)));
    CHECK(endless.next().has_value());
    auto beyond = range(3).repeat().batch(INT64_MAX).iterate();
    REQUIRE(beyond.restore(test::place(3, -1)));
    CHECK(beyond.next().error().code == errc::limit_exceeded);
    CHECK(test::text_of({{iterator.position()}, {}}) == "[0 3 0]");
  }
}

} // namespace dataset_test
