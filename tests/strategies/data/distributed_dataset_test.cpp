// SPDX-License-Identifier: Apache-2.0
// Goal: each step has one element for every replica of a pipeline, all pipelines end together, and
// a resumed one goes on with the next step. Method: small numbers, written out: a step as
// "[0 1]|[2 3]", one element for each replica.
#include "messages/errors/failure.hpp"
#include "strategies/data/distributed_dataset.hpp"
#include "strategies/data/file_list.hpp"
#include "strategies/data/text_file.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/strategies/data/numbers.hpp"
#include "tests/strategies/data/refusal.hpp"

#include <deque>

namespace distributed_dataset_test {

TEST_SUITE("strategies/data/distributed_dataset") {
  using namespace troupe;
  using test::range;
  using test::refusal;
  using lines = std::vector<std::string>;

  lines drain(distributed_iterator & from, size_t count_max = 1000) {
    lines all;
    while (all.size() < count_max) {
      auto step = from.next();
      if (step && !*step) break;
      lines texts;
      if (step)
        for (const auto& one : **step)
          texts.push_back(test::text_of(one));
      all.push_back(step ? fmt::format("{}", fmt::join(texts, "|")) : step.error().message);
    }
    return all;
  }

  lines steps_of(const distributed_dataset& source, size_t count_max = 1000) {
    auto iterator = source.iterate();
    return drain(iterator, count_max);
  }

  // One pipeline of so many replicas.
  input_distribution alone(uint64_t replicas) {
    return {.context = {1, 0, replicas}};
  }

  // The steps of all pipelines.
  std::vector<lines> all_steps(const dataset& source, uint64_t pipelines, uint64_t replicas,
                               auto_shard_policy policy = auto_shard_policy::automatic) {
    std::vector<lines> all;
    for (uint64_t i = 0; i < pipelines; ++i)
      all.push_back(
        steps_of(distribute(source, {.context = {pipelines, i, replicas}, .policy = policy})));
    return all;
  }

  TEST_CASE("a global batch is divided among the replicas") {
    CHECK(steps_of(distribute(range(8).batch(4), alone(2))) == lines{"[0 1]|[2 3]", "[4 5]|[6 7]"});
    CHECK(steps_of(distribute(range(8).batch(4), alone(3)))
          == lines{"[0 1]|[2]|[3]", "[4 5]|[6]|[7]"});
    CHECK(distribute(range(8).batch(4), alone(2)).replicas() == 2);
  }

  TEST_CASE("one replica gets the elements as they are, batches or not") {
    CHECK(steps_of(distribute(range(3))) == lines{"0", "1", "2"});
    CHECK(steps_of(distribute(range(3).batch(2))) == lines{"[0 1]", "[2]"});
  }

  TEST_CASE("replicas of one pipeline take consecutive elements of it, so pipelines interleave") {
    CHECK(all_steps(range(8).batch(4), 2, 4)
          == std::vector{lines{"[0]|[2]", "[4]|[6]"}, lines{"[1]|[3]", "[5]|[7]"}});
  }

  TEST_CASE("three pipelines share two batches of four as two, two and none") {
    CHECK(all_steps(range(8).batch(4), 3, 3, auto_shard_policy::data)
          == std::vector{lines{"[0 1]", "[4 5]"}, lines{"[2 3]", "[6 7]"}, lines{"[]", "[]"}});
  }

  TEST_CASE("pipelines that divide elements need not know the sizes of batches") {
    const auto drawn = range(10).batch(4).shuffle(9, 1).take(2);
    for (auto policy : {auto_shard_policy::data, auto_shard_policy::automatic}) {
      std::string digits;
      for (const auto& part : all_steps(drawn, 2, 2, policy)) {
        CHECK(part.size() == 2);
        digits += fmt::format("{}", fmt::join(part, ""));
      }
      std::ranges::sort(digits);
      CHECK((digits.ends_with("]]]]") && digits.starts_with("  ")));
    }
    CHECK(refusal([&] {
            return distribute(drawn, alone(2));
          }).starts_with("invalid_argument: rebatch: a shuffle decides"));
  }

  TEST_CASE("without sharding each pipeline reads everything, a global batch in so many steps") {
    CHECK(
      all_steps(range(6).batch(3), 2, 2, auto_shard_policy::off)
      == std::vector{lines{"[0 1]", "[2]", "[3 4]", "[5]"}, lines{"[0]", "[1 2]", "[3]", "[4 5]"}});
  }

  TEST_CASE("pipelines that read files of their own end together") {
    const auto files = files_in_turn({range(5), range(2, 10)});
    CHECK(all_steps(files.batch(2), 2, 2)
          == std::vector{lines{"[0]", "[1]", "[2]", "[3]", "[4]"},
                         lines{"[10]", "[11]", "[]", "[]", "[]"}});
    CHECK(all_steps(files.batch(2, true), 2, 2)
          == std::vector{lines{"[0]", "[1]"}, lines{"[10]", "[11]"}});
  }

  TEST_CASE("a pipeline without files gets batches without rows of the right shape") {
    const auto rows = dataset::from_tensor_slices({test::numbers(6).reshape({2, 3})});
    const auto files = files_in_turn({rows}).batch(4);
    const auto part = distribute(files, {.context = {2, 1, 2}});
    CHECK(part.steps() == 1);
    auto iterator = part.iterate();
    const auto step = iterator.next();
    REQUIRE(step);
    CHECK((**step)[0].tensors[0].extents() == shape{0, 3});
    CHECK(iterator.next() == std::nullopt);
  }

  TEST_CASE("a dataset without end needs a file for each pipeline that is to read one") {
    const auto one_file = files_in_turn({range(4)}).batch(2).repeat();
    for (uint64_t pipeline : {0, 1})
      CHECK(test::refusal([&] {
              return distribute(one_file, {.context = {2, pipeline, 2}});
            })
            == "invalid_argument: distribute: the dataset has no end, but not every one of 2 "
               "pipelines has a file, so that no step would be whole: take the policy DATA, or "
               "more files");
  }

  TEST_CASE("batches that drop their remainder need elements for each pipeline, or none at all") {
    const auto line
      = "invalid_argument: distribute: pipeline 1 of 2 has no elements, so that every "
        "step would be left out: take the policy DATA, more files, or batch() without "
        "drop_remainder";
    for (uint64_t pipeline : {0, 1}) {
      const input_distribution how{.context = {2, pipeline, 2}};
      CHECK(refusal([&] { return distribute(files_in_turn({range(8)}).batch(4, true), how); })
            == line);
      CHECK(refusal([&] {
              return distribute(files_in_turn({range(8), range(3)}).batch(4, true), how);
            })
            == line);
      CHECK(distribute(files_in_turn({range(3)}).batch(4, true), how).steps() == 0);
    }
    const auto by_elements
      = all_steps(files_in_turn({range(8)}).batch(4, true), 2, 2, auto_shard_policy::data);
    CHECK(by_elements == std::vector{lines{"[0 1]", "[4 5]"}, lines{"[2 3]", "[6 7]"}});
  }

  TEST_CASE("in the last step, a replica that lacks data gets a batch without rows") {
    CHECK(steps_of(distribute(range(9).batch(4), alone(2)))
          == lines{"[0 1]|[2 3]", "[4 5]|[6 7]", "[8]|[]"});
    CHECK(distribute(range(9).batch(4), alone(2)).has_partial_steps());
    CHECK(distribute(range(8).batch(4), alone(2)).has_partial_steps());
  }

  TEST_CASE("batches that drop their remainder end when any replica lacks data") {
    const auto how = alone(2);
    const auto per_replica = [](const input_context&) { return range(7).batch(2, true); };
    const auto source = distribute_from_function(per_replica, how);
    CHECK_FALSE(source.has_partial_steps());
    CHECK(steps_of(source) == lines{"[0 1]|[2 3]"});
    CHECK(steps_of(distribute(range(9).batch(4, true), how))
          == lines{"[0 1]|[2 3]", "[4 5]|[6 7]"});
  }

  TEST_CASE("single examples end when any replica lacks one: there is no example without rows") {
    const auto examples = [](const input_context&) { return range(5); };
    CHECK(steps_of(distribute_from_function(examples, alone(2))) == lines{"0|1", "2|3"});
  }

  TEST_CASE("batches of a source of one's own are all delivered, whatever their sizes") {
    const auto batches = [](const input_context&) {
      return dataset{3, [] {
                       return [](uint64_t, uint64_t index) -> expected<element> {
                         return element{{zeros({static_cast<int64_t>(index) + 1}, dtype::i64)}, {}};
                       };
                     }};
    };
    const auto source = distribute_from_function(batches, alone(2));
    CHECK(source.has_partial_steps());
    CHECK(steps_of(source).size() == 2);
  }

  TEST_CASE("batches that a function makes of examples are all delivered, whatever their sizes") {
    const auto load = [](const element& one) {
      return element{{test::numbers(one.tensors[0].values<int64_t>()[0] + 1)}, {}};
    };
    const auto source = distribute_from_function(
      [&](const input_context&) { return range(3).map(load); }, alone(2));
    CHECK(source.has_partial_steps());
    CHECK(steps_of(source) == lines{"[0]|[0 1]", "[0 1 2]|[]"});
  }

  TEST_CASE("a dataset without end has no partial steps") {
    const auto source = distribute(range(3).batch(2).repeat(), alone(2));
    CHECK_FALSE(source.has_partial_steps());
    CHECK(source.steps() == dataset::infinite);
    CHECK(steps_of(source, 3) == lines{"[0]|[1]", "[2]|[0]", "[1]|[2]"});
  }

  TEST_CASE("batches of unknown size are cut into as many pieces as there are replicas") {
    const auto mapped = range(7).batch(4).map([](element one) { return one; });
    CHECK(steps_of(distribute(mapped, alone(2))) == lines{"[0 1]|[2 3]", "[4 5]|[6]"});
    CHECK(steps_of(distribute(mapped, alone(3))) == lines{"[0 1]|[2 3]|[]", "[4]|[5]|[6]"});
  }

  TEST_CASE("an empty dataset has no steps") {
    CHECK(steps_of(distribute(range(0).batch(4), alone(2))).empty());
    CHECK(all_steps(range(0).batch(4), 2, 2) == std::vector{lines{}, lines{}});
  }

  TEST_CASE("each pass evaluates the dataset anew") {
    int reads = 0;
    const auto counted = range(4).batch(2).map([&reads](element one) {
      ++reads;
      return one;
    });
    const auto source = distribute(counted, alone(2));
    CHECK(steps_of(source) == steps_of(source));
    CHECK(reads == 4);
  }

  TEST_CASE("refuses examples that were not batched, and uneven pipelines") {
    CHECK(refusal([] { return distribute(range(8), alone(2)); })
          == "invalid_argument: rebatch: the elements are single examples: call batch() with the "
             "global batch size, so that each batch can be divided among the replicas");
    CHECK(refusal([] {
            return distribute(range(8).batch(4), {.context = {2, 0, 3}});
          }).starts_with("invalid_argument: distribute: every pipeline feeds"));
    CHECK(refusal([] {
            return distribute(range(8).batch(4),
                              {.context = {2, 0, 2}, .policy = auto_shard_policy::file});
          }).starts_with("not_found: auto_shard: "));
    CHECK(refusal([] {
            return distribute(
              range(8).batch(4),
              {.options = {.replication_mode = input_replication_mode::per_replica}});
          })
          == "unimplemented: distribute: the replication mode per_replica needs a function that "
             "makes the dataset of each replica");
  }

  TEST_CASE("refuses texts that were not batched, behind a function, too") {
    const auto texts = range(3).map(
      [](const element& one) { return element{.texts = {"line " + test::text_of(one)}}; });
    const auto same = [](element one) { return one; };
    const auto line = "rebatch: a text has no rows to divide: call batch() before the dataset is "
                      "divided among replicas, or set `rows` where a function makes batches of "
                      "texts";
    for (uint64_t pipelines : {1, 2})
      CHECK(steps_of(distribute(texts.map(same), {.context = {pipelines, 0, 2}})).front() == line);
    const auto pairs = dataset::zip({texts, texts});
    CHECK(steps_of(distribute(pairs, alone(2))).front() == line);
    const auto made
      = distribute_from_function([&](const input_context&) { return texts; }, alone(2));
    CHECK(steps_of(made) == lines{"line 0|line 1", line});
    const auto two_of = [](const element& one) {
      return element{.texts = {test::text_of(one), "more"}, .rows = 2};
    };
    CHECK(steps_of(distribute(range(2).map(two_of), alone(2))) == lines{"0|more", "1|more"});
    const auto remade = [](const element& one) { return element{.texts = one.texts}; };
    CHECK(steps_of(distribute(texts.batch(2).map(remade), alone(2)))
          == lines{"line 0|line 1", "line 2|"});
  }

  TEST_CASE("a function makes the dataset of its pipeline, which is neither cut nor divided") {
    std::vector<input_context> asked;
    const auto make = [&](const input_context& context) {
      asked.push_back(context);
      const auto batch_size = context.get_per_replica_batch_size(8);
      return range(16)
        .shard(context.num_input_pipelines, context.input_pipeline_id)
        .batch(batch_size);
    };
    const auto source = distribute_from_function(make, {.context = {2, 1, 4}});
    CHECK(asked == std::vector{input_context{2, 1, 4}});
    CHECK(steps_of(source) == lines{"[1 3]|[5 7]", "[9 11]|[13 15]"});
  }

  TEST_CASE("pipelines from functions end together when they are told to") {
    std::vector<distributed_dataset> parts;
    for (uint64_t i = 0; i < 2; ++i) {
      parts.push_back(distribute_from_function(
        [](const input_context& context) {
          return range(context.input_pipeline_id == 0 ? 6 : 0).batch(2);
        },
        {.context = {2, i, 2}}));
    }
    CHECK(parts[1].steps() == 0);
    end_together(parts);
    CHECK(steps_of(parts[0]) == lines{"[0 1]", "[2 3]", "[4 5]"});
    CHECK(steps_of(parts[1]) == lines{"[]", "[]", "[]"});
    parts.push_back(distribute(range(2).batch(1, true)));
    end_together(parts);
    CHECK(parts[0].steps() == 0);
  }

  TEST_CASE(
    "AUTO says why it has divided elements, once for all pipelines, and FILE says nothing") {
    lines told;
    input_distribution how{.context = {3, 1, 3},
                           .options = {.on_warning = [&](auto line) { told.push_back(line); }}};
    static_cast<void>(distribute(range(12).batch(3), how));
    CHECK(told
          == lines{"auto_shard: the dataset reads no files that could be divided; AUTO has divided "
                   "the elements, so that each of the 3 pipelines reads all of the data and uses a "
                   "part of it"});
    how.policy = auto_shard_policy::data;
    static_cast<void>(distribute(range(12).batch(3), how));
    how = {.context = {1, 0, 3}, .options = how.options};
    static_cast<void>(distribute(range(12).batch(3), how));
    CHECK(told.size() == 1);
  }

  TEST_CASE("in the mode per_replica a function makes a dataset for each replica") {
    std::vector<input_context> asked;
    const input_distribution how{
      .context = {1, 0, 3}, .options = {.replication_mode = input_replication_mode::per_replica}};
    const auto source = distribute_from_function(
      [&](const input_context& context) {
        asked.push_back(context);
        const auto id = static_cast<int64_t>(context.input_pipeline_id);
        return range(id + 2, id * 10).batch(1);
      },
      how);
    CHECK(asked
          == std::vector{input_context{3, 0, 3}, input_context{3, 1, 3}, input_context{3, 2, 3}});
    CHECK(steps_of(source)
          == lines{"[0]|[10]|[20]", "[1]|[11]|[21]", "[]|[12]|[22]", "[]|[]|[23]"});
    CHECK(
      refusal([&] {
        return distribute_from_function(
          [](const input_context& context) {
            return range(context.input_pipeline_id == 1 ? 1 : 4).batch(2, true);
          },
          how);
      })
      == "invalid_argument: distribute: the dataset of replica 1 has no elements, so that every "
         "step would be left out; give each replica at least one");
    auto several = how;
    several.context = {2, 0, 4};
    CHECK(
      refusal([&] {
        return distribute_from_function([](const input_context&) { return range(1); }, several);
      })
      == "unimplemented: distribute: the replication mode per_replica is for the replicas of one "
         "pipeline");
  }

  TEST_CASE("refuses a function's options that contradict each other") {
    CHECK(refusal([] {
            return distribute_from_function([](const input_context&) { return range(1); },
                                            {.options = {.place_dataset_on_device = true}});
          }).starts_with("invalid_argument: input_options: "));
  }

  TEST_CASE("refuses an empty function that would make the dataset") {
    CHECK(refusal([] { return distribute_from_function(nullptr, alone(2)); })
          == "invalid_argument: distribute: the function that makes a dataset is empty");
  }

  TEST_CASE("as many elements are read ahead as there are replicas") {
    std::deque<std::function<void()>> tasks;
    int reads = 0;
    auto how = alone(2);
    how.elsewhere = [&](std::function<void()> task) { tasks.push_back(std::move(task)); };
    const auto make = [&](const input_context&) {
      return range(12).batch(1).map([&reads](element one) {
        ++reads;
        return one;
      });
    };
    auto iterator = distribute_from_function(make, how).iterate();
    CHECK(drain(iterator, 1) == lines{"[0]|[1]"});
    for (; !tasks.empty(); tasks.pop_front())
      tasks.front()();
    CHECK(reads == 4);
    CHECK(drain(iterator, 1) == lines{"[2]|[3]"});
    CHECK(reads == 4);
  }

  TEST_CASE("knows its position in steps, and goes there") {
    const auto source = distribute(range(9).shuffle(9, 1).batch(4), alone(2));
    const auto all = steps_of(source);
    for (size_t done = 0; done <= all.size(); ++done) {
      auto first = source.iterate();
      (void)drain(first, done);
      CHECK(test::text_of({{first.position()}, {}}) == fmt::format("[{} 3 0]", done));
      auto second = source.iterate();
      (void)drain(second, 2);
      REQUIRE(second.restore(first.position()));
      CHECK(drain(second) == lines(all.begin() + static_cast<ptrdiff_t>(done), all.end()));
    }
    auto iterator = source.iterate();
    CHECK(
      iterator.restore(test::place(1, 4)).error().message
      == "restore: the position is one in a dataset of 4 steps, this one has 3: the data or the "
         "stages have changed");
    CHECK_FALSE(iterator.restore(test::place(4, 3)));
    CHECK_FALSE(iterator.restore(zeros({2})));
  }

  TEST_CASE("an element that cannot be read fails its step, and the next one is whole") {
    const auto source = distribute_from_function(
      [](const input_context&) {
        return range(6).map([](element one) {
          if (test::text_of(one) == "2") throw std::runtime_error{"bad"};
          return one;
        });
      },
      alone(2));
    CHECK(steps_of(source) == lines{"0|1", "map: the function threw: bad", "4|5"});
  }

  TEST_CASE("a hint behind batches of different sizes is followed, or fails each step") {
    const auto marked = range(10).batch(4).shard(dataset::shard_hint, dataset::shard_hint);
    CHECK(all_steps(marked, 1, 2, auto_shard_policy::hint)
          == std::vector<lines>{{"[0 1]|[2 3]", "[4 5]|[6 7]", "[8 9]|[]"}});
    CHECK(all_steps(marked, 1, 2).front().front()
          == "shard: the shard of shard_hint is not known: distribute the dataset with the policy "
             "hint");
  }

  TEST_CASE("batches of scalars by a source of one's own fail, not the job") {
    const auto scalars = range(3);
    const dataset own{3, [scalars] { return scalars.open(); }};
    CHECK(steps_of(distribute(own.map([](element one) { return one; }), alone(2))).front()
          == "rebatch: a scalar has no rows to divide: call batch() before the dataset is divided "
             "among replicas");
  }

  TEST_CASE("two pipelines of two replicas each read the files of one job") {
    test::scratch_folder folder;
    test::write(folder / "a", "a1\na2\na3\na4\na5\n");
    test::write(folder / "b", "b1\nb2\nb3\n");
    const uint64_t pipelines = 2;
    const uint64_t replicas = 4;
    uint64_t pipeline = 1;
    std::vector<std::string> received(2);
    const auto use = [&](size_t replica, const element& part) {
      for (const auto& line : part.texts)
        received[replica] += line;
    };
    // In each step the four replicas together take four lines.
    auto lines = read_files({folder / "a", folder / "b"}, text_file);
    input_context mine{pipelines, pipeline, replicas};
    auto steps = distribute(lines.batch(4), {.context = mine}).iterate();
    while (auto step = value_or_throw(steps.next()))
      for (size_t replica = 0; replica < step->size(); ++replica)
        use(replica, (*step)[replica]);
    CHECK(received == std::vector<std::string>{"b1b3", "b2"});
    CHECK(steps_of(distribute(lines.batch(4), {.context = mine}))
          == std::vector<std::string>{"b1|b2", "b3|", "|"});
    CHECK(steps_of(distribute(lines.batch(4), {.context = {2, 0, 4}}))
          == std::vector<std::string>{"a1|a2", "a3|a4", "a5|"});
    auto make = [&](const input_context& context) {
      auto share = lines.shard(context.num_input_pipelines, context.input_pipeline_id);
      return share.batch(context.get_per_replica_batch_size(4));
    };
    auto made = distribute_from_function(make, {.context = mine});
    CHECK(steps_of(made) == std::vector<std::string>{"a2|a4", "b1|b3"});
  }
}

} // namespace distributed_dataset_test
