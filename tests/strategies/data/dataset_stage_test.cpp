// SPDX-License-Identifier: Apache-2.0
// Goal: a dataset knows the size of its batches, as far as that can be known. Method: a table.
#include "strategies/data/csv_file.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/file_list.hpp"
#include "strategies/data/idx_file.hpp"
#include "strategies/data/rebatch.hpp"
#include "strategies/data/text_file.hpp"
#include "strategies/data/tfrecord_file.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/memory_file.hpp"
#include "tests/strategies/data/numbers.hpp"

namespace dataset_stage_test {

TEST_SUITE("strategies/data/dataset_stage") {
  using namespace troupe;
  using test::range;

  element same(element one) {
    return one;
  }

  TEST_CASE("the size of a batch passes through stages that leave elements as they are") {
    const executor at_once = [](const std::function<void()>& task) { task(); };
    const auto batches = range(20).batch(4);
    CHECK(batch_size_of(batches) == 4);
    CHECK(batch_size_of(batches.take(2)) == 4);
    CHECK(batch_size_of(batches.skip(2)) == 4);
    CHECK(batch_size_of(batches.prefetch(2, at_once)) == 4);
    CHECK(batch_size_of(batches.shuffle(2, 1)) == 4);
    CHECK(batch_size_of(batches.repeat()) == 4);
    CHECK(batch_size_of(batches.shard(2, 0)) == 4);
    CHECK(batch_size_of(batches.shard(dataset::shard_hint, dataset::shard_hint)) == 4);
    CHECK(batch_size_of(batches.batch(3)) == 3);
  }

  TEST_CASE("the size of a batch is unknown behind a map, and of inputs that differ") {
    const auto batches = range(20).batch(4);
    CHECK(batch_size_of(batches.map(same)) == -1);
    CHECK(batch_size_of(range(20).map(same).batch(4)) == 4);
    CHECK(batch_size_of(dataset::zip({batches, batches})) == 4);
    CHECK(batch_size_of(dataset::zip({batches, range(20).batch(5)})) == -1);
    CHECK(batch_size_of(batches.concatenate(range(4).batch(4))) == 4);
    CHECK(batch_size_of(batches.concatenate(range(4).batch(2))) == -1);
    CHECK(batch_size_of(rebatch(batches, {2, 2})) == 2);
    CHECK(batch_size_of(rebatch(batches, {3, 1})) == -1);
    CHECK(batch_size_of(legacy_rebatch(batches, 2)) == -1);
    CHECK(batch_size_of(dataset::from_tensors({test::numbers(4)})) == -1);
    CHECK(batch_size_of(files_in_turn({batches})) == -1);
  }

  TEST_CASE("examples are known to be no batches") {
    CHECK(batch_size_of(range(20)) == 0);
    CHECK(batch_size_of(range(20).shuffle(2, 1).repeat()) == 0);
    CHECK(batch_size_of(dataset::zip({range(4).batch(2), range(2)})) == 0);
    CHECK(batch_size_of(files_in_turn({range(2), range(3)})) == 0);
    CHECK(batch_size_of(dataset::from_tensor_slices({test::numbers(4).reshape({2, 2})})) == -1);
  }

  TEST_CASE("maps of examples are told from maps of batches") {
    CHECK(come_of_examples(range(4)));
    CHECK(come_of_examples(range(4).map(same).repeat().map(same)));
    CHECK(come_of_examples(dataset::zip({range(4).batch(2), range(2).map(same)})));
    CHECK(come_of_examples(files_in_turn({range(4)}).map(same)));
    CHECK_FALSE(come_of_examples(range(4).map(same).batch(2).map(same)));
    CHECK_FALSE(come_of_examples(legacy_rebatch(range(4).map(same), 2)));
    CHECK_FALSE(come_of_examples(dataset::from_tensors({test::numbers(4)}).map(same)));
  }

  TEST_CASE("files are told from other sources, and their records from batches") {
    const auto lines = text_dataset(test::in_memory("one\ntwo\n"));
    const auto table = csv_dataset(test::in_memory("a,b\n1,2\n"));
    const auto labels = idx_dataset(test::in_memory({"\0\0\x08\x01\0\0\0\x01\x07", 9}));
    const auto images = idx_dataset(test::in_memory({"\0\0\x08\x02\0\0\0\x01\0\0\0\x01\x07", 13}));
    const auto records = tfrecord_dataset(test::in_memory(""));
    for (const auto* one : {&lines, &table, &labels, &images, &records}) {
      REQUIRE(*one);
      CHECK((*one)->made_by().kind == stage_kind::file);
      CHECK(batch_size_of(**one) == (one == &images ? -1 : 0));
    }
    CHECK(range(2).made_by().kind == stage_kind::source);
    CHECK(files_in_turn({*lines, *lines}).made_by().kind == stage_kind::files);
  }

  TEST_CASE("only batches that drop their remainder are all of one shape") {
    CHECK(has_fixed_extents(range(9)));
    CHECK(has_fixed_extents(range(9).batch(4, true).map(same)));
    CHECK(has_fixed_extents(range(9).batch(4, true).map(same).shuffle(2, 1).map(same)));
    CHECK_FALSE(has_fixed_extents(range(8).batch(4).map(same)));
    CHECK_FALSE(has_fixed_extents(range(9).map(same)));
    CHECK(has_fixed_extents(range(9).map(same).batch(4, true)));
    CHECK_FALSE(has_fixed_extents(range(9).batch(4, true).concatenate(range(9).batch(4))));
    CHECK(has_fixed_extents(rebatch(range(9).batch(4, true), {2, 2})));
    CHECK_FALSE(has_fixed_extents(rebatch(range(9).batch(4, true), {2, 1})));
    CHECK_FALSE(has_fixed_extents(rebatch(range(9).batch(4, true), {3, 3})));
    CHECK(has_fixed_extents(rebatch(range(9).batch(4), {3, 3}, true)));
    CHECK(has_fixed_extents(legacy_rebatch(range(9).batch(4, true), 2)));
    CHECK_FALSE(has_fixed_extents(legacy_rebatch(range(9).batch(4, true), 3)));
  }
}

} // namespace dataset_stage_test
