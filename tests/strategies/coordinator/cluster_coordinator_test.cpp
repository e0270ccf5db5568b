// SPDX-License-Identifier: Apache-2.0
// Goal: what tf.distribute's coordinator promises, row by row. Method: workers of one process, in
// the threads world where something has to wait, else in virtual time.
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace cluster_coordinator_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A coordinator with its workers.
struct team {
  explicit team(uint32_t workers, world made = world::virtual_time(),
                coordinator_options options = {})
    : world(std::move(made)), strategy(world, {.replicas = workers}),
      counter(strategy.make_variable("counter", scalar(0))), coordinator(strategy, options) {}

  [[nodiscard]] double count() { return numbers_of(strategy.read(counter)).at(0); }

  troupe::world world;
  parameter_server_strategy strategy;
  variable counter;
  cluster_coordinator coordinator;
};

// Something that functions wait for on computing threads, and see when they are cancelled.
struct gate {
  std::atomic<bool> is_open = false;
  std::atomic<int> waiting = 0;

  void pass(const std::stop_token& stop) {
    ++waiting;
    while (!is_open && !stop.stop_requested())
      std::this_thread::sleep_for(1ms);
  }

  void await(int count) const {
    while (waiting < count)
      std::this_thread::sleep_for(1ms);
  }
};

world two_threads() {
  return world::threads({.threads = 2});
}

task<int> compute_at(closure_context& context, gate& at) {
  auto waiting = context.compute([&at](const std::stop_token& stop) {
    at.pass(stop);
    return 0;
  });
  auto result = co_await waiting;
  co_return result;
}

// Waits at a gate without a computing thread: all workers can wait so at the same time.
task<int> read_at(closure_context& context, gate& at, variable any) {
  ++at.waiting;
  while (!at.is_open) {
    auto reading = context.read(any);
    co_await reading;
    std::this_thread::sleep_for(1ms);
  }
  co_return 0;
}

// A function that applies a gradient of -1 to the counter.
auto make_step(team& of, const std::string& name, const update_rule& rule,
               optimizer_options options = {}) {
  optimizer with{rule, options};
  return of.coordinator.make_function(
    name, [with, counter = of.counter](closure_context& context) -> task<void> {
      std::vector<gradient_and_variable> gradients{{scalar(-1), counter}};
      auto applying = with.apply_gradients(context, gradients);
      co_await applying;
    });
}

// A line without the worker's number, which depends on the order in which workers come.
std::string without_worker(std::string line) {
  auto begin = line.find("worker ");
  return begin == std::string::npos ? line : line.erase(begin + 6, 2);
}

template <class T>
std::string line_of(cluster_coordinator& coordinator, const remote_value<T>& value) {
  return refusal_of([&] { static_cast<void>(coordinator.fetch(value)); }).message;
}

constexpr auto cancelled_line
  = "The corresponding function is cancelled. Please reschedule the function.";

int twice(closure_context&, int number) {
  return 2 * number;
}

void fail_always(closure_context&) {
  throw std::runtime_error("broken");
}

template <class Argument>
concept can_be_given
  = requires(cluster_coordinator& to, coordinated_function<int, int> function, Argument argument) {
  to.schedule(function, argument);
};

static_assert(can_be_given<int>);
static_assert(can_be_given<per_worker_values<int>>);
static_assert(!can_be_given<std::string>);
static_assert(!can_be_given<remote_value<int>>); // a caller fetches it first
static_assert(!can_be_given<std::array<remote_value<int>, 2>>);

struct outputs {
  double loss = 0;
  tensor logits;

  static auto members(auto& self) { return std::tie(self.loss, self.logits); }
};

} // namespace

TEST_SUITE("strategies/coordinator/cluster_coordinator") {
  TEST_CASE("the result of a scheduled function is fetched") {
    team one{2};
    auto function = one.coordinator.make_function("twice", twice);
    auto result = one.coordinator.schedule(function, 21);
    CHECK(one.coordinator.fetch(result) == 42);
    CHECK(one.coordinator.fetch(result) == 42);
    CHECK(one.coordinator.done());
  }

  TEST_CASE("functions read and change variables, and workers' changes interleave") {
    team one{3, two_threads()};
    auto function = one.coordinator.make_function(
      "count", [counter = one.counter](closure_context& context) -> task<double> {
        auto adding = context.assign_add(counter, 1);
        co_await adding;
        auto reading = context.read(counter);
        auto value = co_await reading;
        co_return value.values<float>()[0];
      });
    std::vector<remote_value<double>> seen;
    for (int i = 0; i < 100; ++i)
      seen.push_back(one.coordinator.schedule(function));
    one.coordinator.join();
    CHECK(one.count() == 100);
    for (auto value : one.coordinator.fetch(seen))
      CHECK(value >= 1);
  }

  TEST_CASE("functions go out in the order in which they were scheduled") {
    team one{1};
    auto order = std::make_shared<std::vector<int>>();
    auto function = one.coordinator.make_function(
      "note", [order](closure_context&, int number) { order->push_back(number); });
    for (int i = 0; i < 5; ++i)
      static_cast<void>(one.coordinator.schedule(function, i));
    one.coordinator.join();
    CHECK(*order == std::vector<int>{0, 1, 2, 3, 4});
  }

  TEST_CASE("every idle worker gets a function") {
    gate open;
    team one{3, two_threads()};
    auto function = one.coordinator.make_function(
      "wait", [&](closure_context& context) { return read_at(context, open, one.counter); });
    for (int i = 0; i < 3; ++i)
      static_cast<void>(one.coordinator.schedule(function));
    open.await(3);
    CHECK_FALSE(one.coordinator.done());
    open.is_open = true;
    one.coordinator.join();
    CHECK(one.coordinator.done());
  }

  TEST_CASE("schedule waits while the queue is full, and only then") {
    gate open;
    team one{1, two_threads(), {.queue_capacity = 2}};
    auto function = one.coordinator.make_function(
      "wait", [&open](closure_context& context) { return compute_at(context, open); });
    static_cast<void>(one.coordinator.schedule(function));
    open.await(1);
    static_cast<void>(one.coordinator.schedule(function));
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(open.waiting == 1);
    std::thread opener{[&] {
      std::this_thread::sleep_for(50ms);
      open.is_open = true;
    }};
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(open.is_open);
    one.coordinator.join();
    opener.join();
    CHECK(open.waiting == 4);
  }

  TEST_CASE(
    "a schedule that waits in front of a full queue throws the error that comes meanwhile") {
    team one{1, world::virtual_time(), {.queue_capacity = 1}};
    auto bad = one.coordinator.make_function("bad", [](closure_context& context) -> task<void> {
      auto computing = context.compute([](const std::stop_token&) { return 0; });
      co_await computing;
      throw std::runtime_error("broken");
    });
    auto good = one.coordinator.make_function("twice", twice);
    auto failed = one.coordinator.schedule(bad);
    auto queued = one.coordinator.schedule(good, 1); // there is room when the other has gone out
    REQUIRE_FALSE(failed.is_ready());
    CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(good, 2)); }).message
          == "'bad' failed at worker 0: broken");
    CHECK(line_of(one.coordinator, queued) == cancelled_line);
    CHECK(one.coordinator.fetch(one.coordinator.schedule(good, 3)) == 6);
  }

  TEST_CASE("an error is thrown once by join, and the coordinator works as before") {
    team one{1};
    auto bad = one.coordinator.make_function("bad", fail_always);
    auto good = one.coordinator.make_function("twice", twice);
    auto failed = one.coordinator.schedule(bad);
    auto queued = one.coordinator.schedule(good, 1);
    auto reason = refusal_of([&] { one.coordinator.join(); });
    CHECK(reason.code == errc::user_code);
    CHECK(reason.message == "'bad' failed at worker 0: broken");
    one.coordinator.join();
    CHECK(line_of(one.coordinator, queued) == cancelled_line);
    CHECK(one.coordinator.fetch(one.coordinator.schedule(good, 2)) == 4);
    // The call that failed keeps its own error.
    CHECK(line_of(one.coordinator, failed) == "'bad' failed at worker 0: broken");
  }

  TEST_CASE("an error is thrown once by schedule or by done, too") {
    team one{1};
    auto bad = one.coordinator.make_function("bad", fail_always);
    auto good = one.coordinator.make_function("twice", twice);
    auto failed = one.coordinator.schedule(bad);
    CHECK(line_of(one.coordinator, failed) == "'bad' failed at worker 0: broken");
    SUBCASE("schedule") {
      CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(good, 1)); }).code
            == errc::user_code);
    }
    SUBCASE("done") {
      CHECK(refusal_of([&] { static_cast<void>(one.coordinator.done()); }).code == errc::user_code);
    }
    CHECK(one.coordinator.done());
    CHECK(one.coordinator.fetch(one.coordinator.schedule(good, 2)) == 4);
  }

  TEST_CASE("a call whose schedule throws is never made") {
    team one{1};
    auto bad = one.coordinator.make_function("bad", fail_always);
    auto count = one.coordinator.make_function(
      "count", [counter = one.counter](closure_context& context) -> task<void> {
        auto adding = context.assign_add(counter, 1);
        co_await adding;
      });
    auto failed = one.coordinator.schedule(bad);
    CHECK(line_of(one.coordinator, failed) == "'bad' failed at worker 0: broken");
    CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(count)); }).code
          == errc::user_code);
    one.coordinator.join();
    CHECK(one.count() == 0);
    static_cast<void>(one.coordinator.schedule(count));
    one.coordinator.join();
    CHECK(one.count() == 1);
  }

  TEST_CASE("an error cancels what runs, and is thrown when that has ended") {
    auto is_thrown_by = [](auto ask) {
      gate open;
      team one{2, two_threads()};
      auto bad = one.coordinator.make_function("bad", fail_always);
      auto wait = one.coordinator.make_function(
        "wait", [&open](closure_context& context) { return compute_at(context, open); });
      auto waits = one.coordinator.schedule(wait);
      open.await(1);
      auto fails = one.coordinator.schedule(bad);
      static_cast<void>(line_of(one.coordinator, fails));
      CHECK(without_worker(refusal_of([&] { ask(one.coordinator, bad); }).message)
            == "'bad' failed at worker: broken");
      CHECK(waits.is_ready());
      CHECK(line_of(one.coordinator, waits) == cancelled_line);
      CHECK_FALSE(open.is_open);
      CHECK(one.coordinator.done());
    };
    is_thrown_by([](auto& coordinator, auto&) { coordinator.join(); });
    is_thrown_by(
      [](auto& coordinator, auto& bad) { static_cast<void>(coordinator.schedule(bad)); });
    is_thrown_by([](auto& coordinator, auto&) { static_cast<void>(coordinator.done()); });
  }

  TEST_CASE("an error of a cancelled function is thrown by fetch alone") {
    gate open;
    team one{2, two_threads()};
    auto bad = one.coordinator.make_function("bad", fail_always);
    auto wait
      = one.coordinator.make_function("wait", [&open](closure_context& context) -> task<int> {
          try {
            auto waiting = compute_at(context, open);
            co_await waiting;
          } catch (const failure&) {
            throw std::runtime_error("not now");
          }
          co_return 0;
        });
    auto waits = one.coordinator.schedule(wait);
    open.await(1);
    static_cast<void>(one.coordinator.schedule(bad));
    CHECK(without_worker(refusal_of([&] { one.coordinator.join(); }).message)
          == "'bad' failed at worker: broken");
    one.coordinator.join();
    CHECK(without_worker(line_of(one.coordinator, waits)) == "'wait' failed at worker: not now");
  }

  TEST_CASE("variables are read and changed where it leads, outside of functions, too") {
    team one{2};
    auto count = one.coordinator.make_function(
      "count", [counter = one.counter](closure_context& context) -> task<void> {
        auto adding = context.assign_add(counter, 1);
        co_await adding;
      });
    CHECK(numbers_of(one.strategy.assign(one.counter, 10)) == numbers{10});
    static_cast<void>(one.coordinator.schedule(count));
    one.coordinator.join();
    CHECK(numbers_of(one.strategy.assign_sub(one.counter, 2)) == numbers{9});
    CHECK(one.count() == 9);
  }

  TEST_CASE("a function that is cancelled changes no variable any more") {
    gate open;
    team one{2, two_threads()};
    auto bad = one.coordinator.make_function("bad", fail_always);
    auto wait = one.coordinator.make_function(
      "wait", [&open, counter = one.counter](closure_context& context) -> task<void> {
        try {
          auto waiting = compute_at(context, open);
          co_await waiting;
        } catch (const failure&) { // NOLINT(bugprone-empty-catch): it goes on all the same
        }
        auto adding = context.assign_add(counter, 1);
        co_await adding;
      });
    static_cast<void>(one.coordinator.schedule(wait));
    open.await(1);
    static_cast<void>(one.coordinator.schedule(bad));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::user_code);
    CHECK(one.count() == 0);
  }

  TEST_CASE("values of every kind travel, and nests of them") {
    using nest = std::tuple<std::vector<tensor>, std::map<std::string, double>, std::optional<int>,
                            std::pair<bool, std::string>, std::array<float, 2>>;
    team one{1};
    auto echo = one.coordinator.make_function(
      "echo", [](closure_context&, const nest& value, outputs named) {
        return std::pair{value, named};
      });
    nest given{{array({2}, {1, 2}), array({30}, numbers(30, 4), dtype::i64)},
               {{"a", 0.1}, {"b", -2}},
               7,
               {true, "text"},
               {0.5F, 0.25F}};
    auto [value, named]
      = one.coordinator.fetch(one.coordinator.schedule(echo, given, outputs{0.5, scalar(3)}));
    const auto& [arrays, numbers_by_name, maybe, pair, two] = value;
    CHECK(numbers_of(arrays.at(0)) == numbers{1, 2});
    CHECK(numbers_of(arrays.at(1)) == numbers(30, 4));
    CHECK(numbers_by_name == std::get<1>(given));
    CHECK(maybe == 7);
    CHECK(pair == std::get<3>(given));
    CHECK(two == std::get<4>(given));
    CHECK(named.loss == 0.5);
    CHECK(numbers_of(named.logits) == numbers{3});
  }

  TEST_CASE("rows travel") {
    team one{1};
    auto echo = one.coordinator.make_function(
      "echo", [](closure_context&, indexed_slices rows) { return rows; });
    auto rows = one.coordinator.fetch(one.coordinator.schedule(echo, rows_of({2, 0}, {5, 6}, 4)));
    CHECK(numbers_of(rows.indices) == numbers{2, 0});
    CHECK(numbers_of(rows.values) == numbers{5, 6});
    CHECK(rows.dense_extents == shape{4, 1});
  }

  TEST_CASE("a text that is too long is refused, as an argument and as a result") {
    team one{1};
    auto repeat = one.coordinator.make_function(
      "repeat", [](closure_context&, std::string text) { return text + text; });
    CHECK(refusal_of([&] {
            static_cast<void>(one.coordinator.schedule(repeat, std::string(4097, 'x')));
          }).code
          == errc::limit_exceeded);
    auto result = one.coordinator.schedule(repeat, std::string(4096, 'x'));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::limit_exceeded);
  }

  TEST_CASE("arguments that are too many together are refused") {
    team one{1};
    auto function = one.coordinator.make_function(
      "sizes", [](closure_context&, const std::vector<double>& a, const std::vector<double>& b) {
        return static_cast<int64_t>(a.size() + b.size());
      });
    const std::vector<double> half(600'000);
    auto reason
      = refusal_of([&] { static_cast<void>(one.coordinator.schedule(function, half, half)); });
    CHECK(reason.code == errc::limit_exceeded);
    CHECK(reason.message == "'sizes' takes 1200002 values; at most 1048576 can travel");
    CHECK(one.coordinator.fetch(one.coordinator.schedule(function, half, std::vector<double>{1}))
          == 600'001);
  }

  TEST_CASE("an array of more dimensions than a message holds is refused") {
    team one{1};
    auto echo = one.coordinator.make_function(
      "echo", [](closure_context&, tensor values) { return values.extents().rank(); });
    auto ones = [](size_t rank) { return zeros(shape{std::vector<int64_t>(rank, 1)}); };
    CHECK(one.coordinator.fetch(one.coordinator.schedule(echo, ones(32))) == 32);
    CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(echo, ones(33))); })
          == error{errc::limit_exceeded,
                   "an array of 33 dimensions cannot travel to another process, only 32; reshape "
                   "it"});
  }

  TEST_CASE("fetch maps the remote values of a nest, and leaves the rest") {
    team one{2};
    auto function = one.coordinator.make_function("twice", twice);
    auto schedule = [&](int number) { return one.coordinator.schedule(function, number); };
    std::vector<remote_value<int>> several{schedule(1), schedule(2)};
    std::map<std::string, remote_value<int>> named{{"a", schedule(3)}};
    auto [list, by_name, text, maybe] = one.coordinator.fetch(
      std::tuple{several, named, std::string{"text"}, std::optional{schedule(4)}});
    CHECK(list == std::vector<int>{2, 4});
    CHECK(by_name == std::map<std::string, int>{{"a", 6}});
    CHECK(text == "text");
    CHECK(maybe == 8);
    std::array<remote_value<int>, 2> two{schedule(5), schedule(6)};
    CHECK(one.coordinator.fetch(two) == std::array{10, 12});
  }

  TEST_CASE("a function gets its worker's value of those for each worker") {
    team one{2};
    auto function = one.coordinator.make_function("which", [](closure_context& context, int mine) {
      return std::pair{static_cast<int>(context.worker_index()), mine};
    });
    std::vector<remote_value<std::pair<int, int>>> results;
    for (int i = 0; i < 4; ++i)
      results.push_back(one.coordinator.schedule(function, per_worker_values<int>{{10, 11}}));
    for (auto [worker, mine] : one.coordinator.fetch(results))
      CHECK(mine == 10 + worker);
    auto reason = refusal_of([&] {
      static_cast<void>(one.coordinator.schedule(function, per_worker_values<int>{{1, 2, 3}}));
    });
    CHECK(reason.message == "there are 3 values for 2 workers; give one for each");
  }

  TEST_CASE("each worker reads a dataset of its own, from the beginning for each iterator") {
    team one{2};
    auto data = one.coordinator.create_per_worker_dataset([](const input_context& where) {
      auto rows = array({3}, {0, 1, 2});
      CHECK(where.num_input_pipelines == 2);
      return dataset::from_tensor_slices({rows}).shard(where.num_input_pipelines,
                                                       where.input_pipeline_id);
    });
    auto next = one.coordinator.make_function(
      "next", [](closure_context& context, dataset_iterator& numbers) {
        auto element = value_or_throw(numbers.next());
        if (!element) throw failure{{errc::out_of_range, "no number is left"}};
        return std::pair{context.worker_index(),
                         static_cast<double>(element->tensors[0].values<float>()[0])};
      });
    for (int pass = 0; pass < 2; ++pass) {
      auto iterator = data.iterator();
      auto first = one.coordinator.schedule(next, iterator);
      auto second = one.coordinator.schedule(next, iterator);
      one.coordinator.join();
      for (auto [worker, number] : one.coordinator.fetch(std::vector{first, second}))
        CHECK(number == worker);
    }
    auto over = data.iterator();
    for (int i = 0; i < 4; ++i)
      static_cast<void>(one.coordinator.schedule(next, over));
    auto reason = refusal_of([&] { one.coordinator.join(); });
    CHECK(reason.code == errc::out_of_range); // 3 numbers for 4 calls
  }

  TEST_CASE("each iterator of a shuffled dataset has another order") {
    team one{1};
    auto data = one.coordinator.create_per_worker_dataset(
      dataset::from_tensor_slices({array({6}, {0, 1, 2, 3, 4, 5})}).shuffle(6, 1).batch(6));
    auto read
      = one.coordinator.make_function("read", [](closure_context&, dataset_iterator& numbers) {
          return value_or_throw(numbers.next())->tensors[0];
        });
    auto order = [&](const per_worker_iterator& from) {
      return numbers_of(one.coordinator.fetch(one.coordinator.schedule(read, from)));
    };
    auto first = order(data.iterator());
    auto second = order(data.iterator());
    CHECK(first != second);
    std::ranges::sort(first);
    std::ranges::sort(second);
    CHECK(first == second);
  }

  TEST_CASE("the passes of a dataset are its own: two of them are ordered alike") {
    team one{1};
    auto source = dataset::from_tensor_slices({array({6}, {0, 1, 2, 3, 4, 5})});
    auto shuffled = source.shuffle(6, 7).batch(6);
    auto examples = one.coordinator.create_per_worker_dataset(shuffled);
    auto labels = one.coordinator.create_per_worker_dataset(shuffled);
    auto read
      = one.coordinator.make_function("read", [](closure_context&, dataset_iterator& numbers) {
          return value_or_throw(numbers.next())->tensors[0];
        });
    auto order = [&](const per_worker_iterator& from) {
      return numbers_of(one.coordinator.fetch(one.coordinator.schedule(read, from)));
    };
    auto first = order(examples.iterator());
    CHECK(order(labels.iterator()) == first);
    auto second = order(examples.iterator());
    CHECK(second != first);
    auto copy = labels;
    CHECK(order(copy.iterator()) == second);
    CHECK(order(labels.iterator()) == order(examples.iterator()));
  }

  TEST_CASE("workers forget the iterators that are not used any more") {
    team one{1};
    int readers = 0;
    auto data = one.coordinator.create_per_worker_dataset([&readers](const input_context&) {
      return dataset{3, [&readers]() -> element_reader {
                       ++readers;
                       std::shared_ptr<void> open{nullptr, [&readers](void*) { --readers; }};
                       return [open](uint64_t, uint64_t) -> expected<element> {
                         return element{{scalar(1)}, {}};
                       };
                     }};
    });
    auto next = one.coordinator.make_function("next", [](closure_context&, dataset_iterator& from) {
      return value_or_throw(from.next()).has_value();
    });
    auto first = data.iterator();
    for (int pass = 0; pass < 5; ++pass) {
      CHECK(one.coordinator.fetch(one.coordinator.schedule(next, data.iterator())));
      CHECK(one.coordinator.fetch(one.coordinator.schedule(next, first)) == (pass < 3));
      CHECK(readers == 1); // that of the handle, which goes on where it was
    }
  }

  TEST_CASE("the iterators of workers cannot be read where the coordinator leads") {
    team one{1};
    auto data = one.coordinator.create_per_worker_dataset(dataset::from_tensors({scalar(1)}));
    CHECK(refusal_of([&] { data.iterator().next(); }).code == errc::unimplemented);
    auto function = one.coordinator.make_function(
      "iterate", [data](closure_context&) { static_cast<void>(data.iterator()); });
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::wrong_context);
  }

  TEST_CASE("an input that cannot be made fails the calls that need it, and only those") {
    team one{1};
    auto data = one.coordinator.create_per_worker_dataset(
      [](const input_context&) -> dataset { throw std::runtime_error("no such file"); });
    auto next = one.coordinator.make_function(
      "next", [](closure_context&, dataset_iterator&) { return 0; });
    auto good = one.coordinator.make_function("twice", twice);
    auto iterator = data.iterator();
    CHECK(one.coordinator.fetch(one.coordinator.schedule(good, 1)) == 2);
    for (int i = 0; i < 2; ++i) {
      auto result = one.coordinator.schedule(next, iterator);
      constexpr auto line = "'next' failed at worker 0: its input could not be made: no such file";
      CHECK(refusal_of([&] { one.coordinator.join(); }).message == line);
      CHECK(line_of(one.coordinator, result) == line);
    }
    CHECK(one.coordinator.fetch(one.coordinator.schedule(good, 2)) == 4);
  }

  TEST_CASE("an empty function that would make inputs is refused") {
    team one{1};
    using maker = std::function<int(const input_context&)>;
    CHECK(
      refusal_of([&] { static_cast<void>(one.coordinator.create_per_worker_resource(maker{})); })
      == error{errc::invalid_argument, "create_per_worker_resource was given an empty function"});
  }

  TEST_CASE("workers keep whatever they have made for themselves") {
    team one{2};
    auto room = one.coordinator.create_per_worker_resource(
      [](const input_context& where) { return static_cast<int>(100 * where.input_pipeline_id); });
    auto count = one.coordinator.make_function("count", [](closure_context& context, int& mine) {
      return ++mine - static_cast<int>(100 * context.worker_index());
    });
    std::vector<remote_value<int>> counts;
    for (int i = 0; i < 10; ++i)
      counts.push_back(one.coordinator.schedule(count, room));
    int sum = 0;
    for (auto value : one.coordinator.fetch(counts))
      sum += value;
    CHECK(sum == 2 * (1 + 2 + 3 + 4 + 5));
  }

  TEST_CASE("no variable is made in a function, nor with the input of one") {
    team one{1};
    auto make = [&one](const auto&) {
      static_cast<void>(one.strategy.make_variable("new", scalar(0)));
      return dataset::from_tensors({scalar(1)});
    };
    auto data = one.coordinator.create_per_worker_dataset(make);
    auto direct = one.coordinator.make_function("direct", [&one](closure_context&) {
      static_cast<void>(one.strategy.make_variable("new", scalar(0)));
    });
    auto reads = one.coordinator.make_function("reads", [](closure_context&, dataset_iterator&) {});
    static_cast<void>(one.coordinator.schedule(direct));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::wrong_context);
    static_cast<void>(one.coordinator.schedule(reads, data.iterator()));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::wrong_context);
  }

  TEST_CASE("a function knows its strategy, and may not wait for the coordinator") {
    team one{1};
    auto function = one.coordinator.make_function("look", [&one](closure_context&) {
      CHECK(has_strategy());
      CHECK(in_cross_replica_context());
      CHECK(&get_strategy() == &one.strategy);
      one.coordinator.join();
    });
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::wrong_context);
  }

  TEST_CASE("a function may not fetch what another one gives") {
    team one{1};
    auto twice_later = one.coordinator.make_function("twice", twice);
    std::optional<remote_value<int>> later;
    auto function = one.coordinator.make_function(
      "look", [&](closure_context&) { return later->fetch(one.world); });
    later = one.coordinator.schedule(twice_later, 1);
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::wrong_context);
  }

  TEST_CASE("inside a read cache the first read counts, and caches do not nest") {
    team one{1};
    auto function = one.coordinator.make_function(
      "cached", [counter = one.counter](closure_context& context) -> task<std::vector<double>> {
        std::vector<double> seen;
        for (int pass = 0; pass < 2; ++pass) {
          auto cache = context.cache_variable_reads();
          for (int i = 0; i < 2; ++i) {
            auto reading = context.read(counter);
            auto value = co_await reading;
            seen.push_back(value.values<float>()[0]);
            auto adding = context.assign_add(counter, 1);
            co_await adding;
          }
          CHECK(refusal_of([&] { auto inner = context.cache_variable_reads(); }).code
                == errc::invalid_argument);
        }
        std::vector<variable> both{counter, counter};
        auto reading = context.read(both);
        auto values = co_await reading;
        seen.push_back(values[1].values<float>()[0]);
        co_return seen;
      });
    CHECK(one.coordinator.fetch(one.coordinator.schedule(function)) == numbers{0, 0, 2, 2, 4});
  }

  TEST_CASE("a read asks for a variable once, however often it is named") {
    team one{1};
    auto reads = [&one] {
      auto all = one.world.observatory().look();
      auto owner = std::ranges::find(all, one.counter.owner().id(), &actor_sight::actor);
      return owner == all.end() ? 0 : owner->received;
    };
    auto function = one.coordinator.make_function(
      "twice", [&](closure_context& context) -> task<std::vector<uint64_t>> {
        std::vector<variable> both{one.counter, one.counter};
        std::vector<uint64_t> counts{reads()};
        for (bool is_cached : {false, true}) {
          std::optional<variable_read_cache> cache;
          if (is_cached) cache.emplace(context);
          for (int i = 0; i < 2; ++i) {
            auto reading = context.read(both);
            auto values = co_await reading;
            CHECK(values.size() == 2);
            counts.push_back(reads() - counts.front());
          }
        }
        co_return counts;
      });
    auto counts = one.coordinator.fetch(one.coordinator.schedule(function));
    counts.erase(counts.begin());
    CHECK(counts == std::vector<uint64_t>{1, 2, 3, 3});
  }

  TEST_CASE("an optimizer applies each function's gradients by themselves") {
    team one{2};
    auto function = make_step(one, "step", rules::momentum{.learning_rate = 1, .decay = 0.5});
    for (int i = 0; i < 3; ++i)
      static_cast<void>(one.coordinator.schedule(function));
    one.coordinator.join();
    CHECK(one.count() == 1 + 1.5 + 1.75); // both workers share the slot
  }

  TEST_CASE("optimizers of several workers take turns on a variable, each by its rule") {
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      CAPTURE(seed);
      team one{3, world::virtual_time({.seed = seed})};
      auto slow = make_step(one, "slow", rules::sgd{.learning_rate = 1});
      auto fast = make_step(one, "fast", rules::momentum{.learning_rate = 100, .decay = 0});
      for (int i = 0; i < 20; ++i)
        static_cast<void>(one.coordinator.schedule(i % 2 == 0 ? slow : fast));
      one.coordinator.join();
      CHECK(one.count() == 1010);
    }
  }

  TEST_CASE("a clip by the norm of all gradients is refused") {
    team one{1};
    auto function = make_step(one, "step", rules::sgd{}, {.clip_global_norm = 1});
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::unimplemented);
  }

  TEST_CASE("all coordinators of a strategy are one") {
    team one{1};
    cluster_coordinator other{one.strategy};
    auto function = one.coordinator.make_function("twice", twice);
    CHECK(other.fetch(other.schedule(function, 1)) == 2);
    CHECK(refusal_of([&] { other.make_function("twice", twice); }).message
          == "there is a function 'twice' already; give this one another name");
  }

  TEST_CASE("functions and inputs of another coordinator are refused") {
    team one{1};
    team other{1};
    auto function = other.coordinator.make_function("twice", twice);
    CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(function, 1)); }).code
          == errc::invalid_argument);
  }

  TEST_CASE("other strategies, and queues without room, are refused") {
    auto world = world::virtual_time();
    mirrored_strategy mirrored{world};
    CHECK(refusal_of([&] { cluster_coordinator{mirrored}; }).message
          == "a coordinator needs a parameter_server_strategy, not a mirrored strategy");
    parameter_server_strategy servers{world};
    CHECK(refusal_of([&] {
            cluster_coordinator{servers, {.queue_capacity = 0}};
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("with a start delay workers begin one after the other, none later than the longest") {
    auto begins_of_all = [](coordinator_options options) {
      gate open;
      team three{3, world::threads({.threads = 3}), std::move(options)};
      auto wait = three.coordinator.make_function(
        "wait", [&open](closure_context& context) { return compute_at(context, open); });
      for (int call = 0; call < 3; ++call)
        static_cast<void>(three.coordinator.schedule(wait));
      open.await(3); // a worker makes one call at a time, so each of them has begun
      auto begun = three.world.now();
      open.is_open = true;
      three.coordinator.join();
      return begun;
    };
    CHECK(begins_of_all({.start_delay = 30ms}) >= 60ms);
    CHECK(begins_of_all({.start_delay = 1h, .start_delay_max = 40ms}) >= 40ms);
    CHECK(refusal_of([&] {
            team{1, world::virtual_time(), {.start_delay = -1ns}};
          }).code
          == errc::invalid_argument);
  }

  TEST_CASE("the process that leads does not serve") {
    team one{1};
    CHECK(one.coordinator.leads());
    CHECK(refusal_of([&] { one.coordinator.serve(); }).code == errc::wrong_context);
  }

  TEST_CASE("join gives up after its timeout") {
    gate open;
    team one{1, two_threads()};
    auto function = one.coordinator.make_function(
      "wait", [&open](closure_context& context) { return compute_at(context, open); });
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(refusal_of([&] { one.coordinator.join(20ms); }).code == errc::deadline_exceeded);
    auto at_once = refusal_of([&] { one.coordinator.join(-1ms); });
    CHECK(at_once.message == "not done in 0.0 s: worker 0 to return from 'wait'");
    open.is_open = true;
    one.coordinator.join();
  }

  TEST_CASE("an error waits for the next caller if the one that waited has given up") {
    gate open;
    team one{1, two_threads()};
    auto function = one.coordinator.make_function("wait and fail",
                                                  [&open](closure_context& context) -> task<void> {
                                                    auto waiting = compute_at(context, open);
                                                    co_await waiting;
                                                    throw std::runtime_error("broken");
                                                  });
    static_cast<void>(one.coordinator.schedule(function));
    CHECK(refusal_of([&] { one.coordinator.join(20ms); }).code == errc::deadline_exceeded);
    open.is_open = true;
    CHECK(refusal_of([&] { one.coordinator.join(); }).message.ends_with("broken"));
    one.coordinator.join();
  }

  TEST_CASE("join, fetch and a full queue give up when no function returns for very long") {
    gate open;
    team one{1, two_threads(), {.queue_capacity = 1, .stall_deadline = 50ms}};
    auto function = one.coordinator.make_function(
      "wait", [&open](closure_context& context) { return compute_at(context, open); });
    auto value = one.coordinator.schedule(function);
    open.await(1);
    static_cast<void>(one.coordinator.schedule(function));
    auto joined = refusal_of([&] { one.coordinator.join(); });
    CHECK(joined.code == errc::deadline_exceeded);
    CHECK(joined.message
          == "no closure has ended for 0.05 s: worker 0 to return from 'wait', with 1 more queued");
    CHECK(refusal_of([&] { static_cast<void>(one.coordinator.fetch(value)); }).code
          == errc::deadline_exceeded);
    CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(function)); }).code
          == errc::deadline_exceeded);
    open.is_open = true;
    one.coordinator.join();
    CHECK(one.coordinator.fetch(value) == 0);
  }

  TEST_CASE("a deadline that is not positive is refused") {
    auto world = world::virtual_time();
    parameter_server_strategy strategy{world, {.replicas = 1}};
    CHECK(refusal_of([&] {
            cluster_coordinator{strategy, {.stall_deadline = 0s}};
          }).message
          == "stall_deadline is 0 s; it must be positive");
  }

  TEST_CASE("a coordinator that ends cancels what is queued, and waits for what runs") {
    gate open;
    auto world = two_threads();
    parameter_server_strategy strategy{world};
    std::vector<remote_value<int>> results;
    {
      cluster_coordinator coordinator{strategy};
      auto function = coordinator.make_function(
        "wait", [&open](closure_context& context) { return compute_at(context, open); });
      for (int i = 0; i < 3; ++i)
        results.push_back(coordinator.schedule(function));
      open.await(1);
    }
    CHECK(open.waiting == 1);
    for (const auto& result : results)
      CHECK(refusal_of([&] { static_cast<void>(result.fetch(world)); }).message == cancelled_line);
    cluster_coordinator next{strategy}; // a new one, which knows no functions
    auto function = next.make_function("wait", twice);
    CHECK(next.fetch(next.schedule(function, 3)) == 6);
  }

  TEST_CASE("in virtual time a seed is an order of changes") {
    auto changes = [](uint64_t seed) {
      team one{4, world::virtual_time({.seed = seed})};
      auto order = std::make_shared<std::vector<uint32_t>>();
      auto function = one.coordinator.make_function(
        "note", [order, counter = one.counter](closure_context& context) -> task<void> {
          auto adding = context.assign_add(counter, 1);
          co_await adding;
          order->push_back(context.worker_index());
        });
      for (int i = 0; i < 20; ++i)
        static_cast<void>(one.coordinator.schedule(function));
      one.coordinator.join();
      CHECK(one.count() == 20);
      return *order;
    };
    CHECK(changes(1) == changes(1));
  }
}

} // namespace cluster_coordinator_test
