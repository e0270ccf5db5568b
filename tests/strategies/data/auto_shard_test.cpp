// SPDX-License-Identifier: Apache-2.0
// Goal: pipelines divide a dataset by files or elements as TensorFlow's auto-sharding does. Method:
// files in memory, and what each pipeline reads, written out.
#include "strategies/data/auto_shard.hpp"
#include "strategies/data/dataset_stage.hpp"
#include "strategies/data/file_list.hpp"
#include "strategies/data/rebatch.hpp"
#include "tests/doctest.hpp"
#include "tests/strategies/data/numbers.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <deque>

namespace auto_shard_test {

TEST_SUITE("strategies/data/auto_shard") {
  using namespace troupe;
  using enum auto_shard_policy;
  using test::line_of;
  using test::range;
  using test::refusal;

  dataset three_files() {
    return files_in_turn({range(2), range(2, 10), range(2, 20)});
  }

  // The elements that each pipeline reads.
  std::vector<std::string> parts(const dataset& all, auto_shard_policy policy, uint64_t count) {
    std::vector<std::string> lines;
    for (uint64_t i = 0; i < count; ++i)
      lines.push_back(line_of(auto_shard(all, policy, count, i, count)));
    return lines;
  }

  using lines = std::vector<std::string>;

  TEST_CASE("one pipeline reads everything, whatever the policy") {
    for (auto policy : {off, automatic, file, data, hint})
      CHECK(line_of(auto_shard(range(4), policy, 1, 0, 1)) == "0 1 2 3");
  }

  TEST_CASE("OFF: each reads everything") {
    CHECK(parts(three_files(), off, 2) == lines{"0 1 10 11 20 21", "0 1 10 11 20 21"});
  }

  TEST_CASE("FILE: file f is read by pipeline f mod n") {
    CHECK(parts(three_files(), file, 2) == lines{"0 1 20 21", "10 11"});
    CHECK(parts(three_files(), automatic, 2) == lines{"0 1 20 21", "10 11"});
  }

  TEST_CASE("FILE: a pipeline without a file has no elements") {
    CHECK(parts(three_files(), automatic, 4) == lines{"0 1", "10 11", "20 21", ""});
    CHECK(
      line_of(auto_shard(three_files().shuffle(3, 1).batch(2).repeat(), file, 4, 3, 4)).empty());
  }

  TEST_CASE("FILE: a single file is read by the first pipeline") {
    const dataset one{3, [] { return range(3).open(); }, {.kind = stage_kind::file}};
    CHECK(parts(one, automatic, 2) == lines{"0 1 2", ""});
  }

  TEST_CASE("FILE: the shard goes behind the files, whatever stages follow") {
    const executor at_once = [](const std::function<void()>& task) { task(); };
    const auto shifted = three_files().map([](element one) {
      auto value = one.tensors[0].clone();
      value.mutable_values<int64_t>()[0] += 100;
      return element{{value}, {}};
    });
    CHECK(parts(shifted, file, 2) == lines{"100 101 120 121", "110 111"});
    CHECK(parts(three_files().batch(3), file, 2) == lines{"[0 1 20] [21]", "[10 11]"});
    CHECK(parts(three_files().shuffle(1, 1), file, 2) == lines{"0 1 20 21", "10 11"});
    CHECK(parts(three_files().prefetch(2, at_once), file, 2) == lines{"0 1 20 21", "10 11"});
    CHECK(parts(three_files().repeat(2), file, 2) == lines{"0 1 20 21 0 1 20 21", "10 11 10 11"});
    CHECK(parts(three_files().skip(1).take(2), file, 2) == lines{"1 20", "11"});
    CHECK(parts(rebatch(three_files().batch(2), {1}), file, 2)
          == lines{"[0] [1] [20] [21]", "[10] [11]"});
    CHECK(parts(three_files().concatenate(three_files()), file, 3)
          == lines{"0 1 0 1", "10 11 10 11", "20 21 20 21"});
    CHECK(parts(dataset::zip({three_files(), three_files()}), file, 3)
          == lines{"0,0 1,1", "10,10 11,11", "20,20 21,21"});
  }

  TEST_CASE("FILE: the sides of a zip are divided only if the same rows meet as before") {
    const auto other_files = files_in_turn({range(3), range(1, 10), range(2, 20)});
    const dataset one_file{6, [] { return range(6).open(); }, {.kind = stage_kind::file}};
    for (const auto& other : {other_files, one_file}) {
      const auto pairs = dataset::zip({three_files(), other});
      CHECK(refusal([&] { return auto_shard(pairs, file, 2, 0, 2); })
            == "not_found: auto_shard: the sides of a zip lie in files of different sizes, so that "
               "other rows would meet: take the policy DATA");
      CHECK(parts(pairs, automatic, 2) == parts(pairs, data, 2));
    }
  }

  TEST_CASE("FILE: each pipeline shuffles its own files") {
    const auto shuffled = files_in_turn({range(1), range(1, 1), range(1, 2), range(1, 3)}, 7);
    const auto part = auto_shard(shuffled, file, 2, 0, 2);
    for (uint64_t pass = 0; pass < 6; ++pass) {
      const auto line = line_of(part.repeat().skip(pass * 2).take(2));
      CHECK((line == "0 2" || line == "2 0"));
    }
  }

  TEST_CASE("FILE: without files, or behind a shard, there is nothing to divide") {
    CHECK(refusal([] { return auto_shard(range(4).batch(2), file, 2, 0, 2); })
          == "not_found: auto_shard: the dataset reads no files that could be divided: take the "
             "policy DATA");
    CHECK(refusal([] { return auto_shard(three_files().shard(2, 0), file, 2, 0, 2); })
          == "not_found: auto_shard: a shard stands between the files and the end: take the policy "
             "DATA");
    CHECK(refusal([] {
            return auto_shard(three_files().concatenate(range(2)), file, 2, 0, 2);
          }).starts_with("not_found: "));
  }

  TEST_CASE("AUTO: takes elements where files cannot be divided") {
    CHECK(parts(range(4), automatic, 2) == lines{"0 2", "1 3"});
    CHECK(parts(three_files().shard(2, 0), automatic, 2) == lines{"0 20", "10"});
    CHECK(parts(dataset::zip({three_files(), range(6)}), automatic, 2)
          == lines{"0,0 10,2 20,4", "1,1 11,3 21,5"});
  }

  TEST_CASE("DATA: element i goes to pipeline i mod n") {
    CHECK(parts(three_files(), data, 2) == lines{"0 10 20", "1 11 21"});
    CHECK(line_of(auto_shard(range(3).repeat(), data, 2, 1, 2), 4) == "1 0 2 1");
  }

  TEST_CASE("DATA: the shard goes before a prefetch at the end") {
    std::deque<std::function<void()>> tasks;
    const executor later = [&](std::function<void()> task) { tasks.push_back(std::move(task)); };
    int reads = 0;
    const auto counted = range(8).map([&reads](element one) {
      ++reads;
      return one;
    });
    const auto part = auto_shard(counted.prefetch(2, later), data, 4, 1, 4);
    CHECK(part.made_by().kind == stage_kind::prefetch);
    auto iterator = part.iterate();
    CHECK(test::drain(iterator, 1) == lines{"1"});
    for (; !tasks.empty(); tasks.pop_front())
      tasks.front()();
    CHECK(reads == 2);
    CHECK(test::drain(iterator) == lines{"5"});
    CHECK(reads == 2);
  }

  TEST_CASE("DATA: each needs an element, but an empty dataset just ends") {
    CHECK(
      refusal([] { return auto_shard(range(2), data, 3, 0, 3); })
      == "invalid_argument: auto_shard: 2 elements are too few for 3 pipelines: each needs one");
    CHECK(parts(range(0), data, 2) == lines{"", ""});
  }

  TEST_CASE("DATA: batches are cut into as many pieces as there are replicas, which stay aligned") {
    const auto pieces = rebatch(range(8).batch(4), batch_sizes_for_pipeline(4, 3, 1, 0));
    CHECK(parts(pieces, data, 3) == lines{"[0 1] [4 5]", "[2 3] [6 7]", "[] []"});
    CHECK(parts(pieces, automatic, 3) == lines{"[0 1] [4 5]", "[2 3] [6 7]", "[] []"});
  }

  TEST_CASE("HINT: the shard goes where the dataset says") {
    const auto marked = range(6).shard(dataset::shard_hint, dataset::shard_hint).batch(2);
    CHECK(parts(marked, hint, 2) == lines{"[0 2] [4]", "[1 3] [5]"});
    CHECK(parts(marked, hint, 1) == lines{"[0 1] [2 3] [4 5]"});
    CHECK(parts(range(3).shard(1, 0), hint, 2) == lines{"0 1 2", "0 1 2"});
  }

  TEST_CASE("HINT: a shard of batches may have a smaller one at its end, or none") {
    const auto marked = range(10).batch(4).shard(dataset::shard_hint, dataset::shard_hint);
    CHECK(parts(rebatch(marked, {2, 2}), hint, 2) == lines{"[0 1] [2 3] [8 9]", "[4 5] [6 7]"});
    CHECK(parts(rebatch(marked.skip(1), {3}), hint, 2) == lines{"[8 9]", ""});
    CHECK(refusal([&] {
            return rebatch(
              range(10).batch(4).shuffle(3, 1).shard(dataset::shard_hint, dataset::shard_hint),
              {2});
          })
          == "invalid_argument: rebatch: a shuffle decides whether the smaller batch is left out: "
             "drop the remainder in batch(), or shuffle before it");
  }

  TEST_CASE("a hint that is not followed fails when it is read") {
    const auto marked = range(2).shard(dataset::shard_hint, dataset::shard_hint);
    CHECK(marked.iterate().next().error()
          == error{errc::failed_precondition, "shard: the shard of shard_hint is not known: "
                                              "distribute the dataset with the policy hint"});
    CHECK(parts(marked, off, 2).front().starts_with("shard: the shard of shard_hint"));
  }

  TEST_CASE("refuses pipelines that are not there") {
    for (auto policy : {off, automatic, file, data, hint})
      CHECK(refusal([&] { return auto_shard(range(4), policy, 2, 2, 2); })
            == "invalid_argument: auto_shard: there is no pipeline 2 of 2, they count from 0");
    CHECK(refusal([] {
            return auto_shard(range(4), data, 2, static_cast<uint64_t>(-1), 2);
          }).starts_with("invalid_argument: "));
    CHECK(refusal([] {
            return auto_shard(range(4), data, 0, 0, 2);
          }).starts_with("invalid_argument: "));
  }

  TEST_CASE("policies have names and numbers") {
    for (auto policy : {off, automatic, file, data, hint})
      CHECK(auto_shard_policy_of(to_string(policy)) == policy);
    CHECK(auto_shard_policy_of("auto") == automatic);
    CHECK(static_cast<int>(off) == -1);
    CHECK(static_cast<int>(hint) == 3);
    CHECK(to_string(static_cast<auto_shard_policy>(7)) == "unknown");
    CHECK(auto_shard_policy_of("FILES").error()
          == error{errc::invalid_argument,
                   "auto_shard: there is no policy 'FILES': it is OFF, AUTO, FILE, DATA or HINT"});
  }
}

} // namespace auto_shard_test
