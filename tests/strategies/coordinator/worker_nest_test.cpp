// SPDX-License-Identifier: Apache-2.0
// Goal: what each worker has of its own may stand anywhere in an argument, as in the original.
// Method: nests of every kind, scheduled on workers of one process.
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "tests/doctest.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/refusal.hpp"

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace worker_nest_test {

using namespace troupe;
using namespace troupe::test;

namespace {

constexpr uint32_t worker_count = 3;

/// A coordinator with three workers.
struct team {
  troupe::world world = world::virtual_time();
  parameter_server_strategy strategy{world, {.replicas = worker_count}};
  cluster_coordinator coordinator{strategy};
};

/// Ten for each worker, and `first`.
per_worker_values<int> tens(int first) {
  per_worker_values<int> values;
  for (uint32_t worker = 0; worker < worker_count; ++worker)
    values.values.push_back(static_cast<int>(10 * worker) + first);
  return values;
}

using row = std::vector<int>;

/// Returns what a worker is given, behind its number: a test sees which worker's part it is.
template <class Nest>
auto echo() {
  return [](closure_context& context, Nest given) {
    return std::pair<int, Nest>{static_cast<int>(context.worker_index()), std::move(given)};
  };
}

/// Schedules a function, and says for every call which worker made it with what.
template <class Nest, class Given>
std::vector<std::pair<int, Nest>> echoed(team& one, const Given& given) {
  auto function = one.coordinator.make_function("echo", echo<Nest>());
  std::vector<remote_value<std::pair<int, Nest>>> results;
  for (uint32_t call = 0; call < 2 * worker_count; ++call)
    results.push_back(one.coordinator.schedule(function, given));
  return one.coordinator.fetch(results);
}

/// A dataset of 0, 1, 2, ... times `step`.
dataset counting(double step) {
  return dataset::from_tensor_slices({array({4}, {0, step, 2 * step, 3 * step})});
}

double number_of(dataset_iterator& from) {
  return numbers_of(value_or_throw(from.next()).value().tensors[0]).at(0);
}

using iterators = std::vector<std::reference_wrapper<dataset_iterator>>;

struct outputs {
  int first = 0;
  int second = 0;

  static auto members(auto& self) { return std::tie(self.first, self.second); }
};

template <class Argument, class Parameter>
concept can_be_given_for
  = requires(cluster_coordinator& to, coordinated_function<int, Parameter> function,
             Argument argument) {
  to.schedule(function, argument);
};

static_assert(can_be_given_for<per_worker_values<int>, double>);
static_assert(can_be_given_for<std::vector<per_worker_values<int>>, row>);
static_assert(can_be_given_for<per_worker_values<row>, const row&>);
static_assert(!can_be_given_for<std::vector<per_worker_values<std::string>>, row>);
static_assert(!can_be_given_for<std::vector<remote_value<int>>, row>); // fetched first
static_assert(!can_be_given_for<per_worker_values<remote_value<int>>, int>);
static_assert(can_be_given_for<per_worker_iterator, dataset_iterator&>);
static_assert(can_be_given_for<std::vector<per_worker_iterator>, iterators>);
static_assert(!can_be_given_for<std::vector<per_worker_resource<int>>, iterators>);
static_assert(!can_be_given_for<per_worker_iterator, dataset_iterator>); // it does not travel
static_assert(!can_be_given_for<dataset_iterator, dataset_iterator&>);

} // namespace

TEST_SUITE("strategies/coordinator/worker_nest") {
  TEST_CASE("values for each worker stand in a list, and each worker gets its own list") {
    team one;
    for (auto [worker, given] : echoed<row>(one, std::vector{tens(1), tens(2)}))
      CHECK(given == row{10 * worker + 1, 10 * worker + 2});
  }

  TEST_CASE("values for each worker stand beside values that are the same for all") {
    using nest = std::tuple<int, std::pair<std::string, int>, std::map<std::string, row>,
                            std::array<int, 2>, std::optional<int>>;
    team one;
    std::map<std::string, std::vector<per_worker_values<int>>> named{{"a", {tens(2)}}, {"b", {}}};
    std::tuple given{7, std::pair{std::string{"text"}, tens(1)}, named,
                     std::array{tens(3), tens(4)}, std::optional{tens(5)}};
    for (const auto& [worker, part] : echoed<nest>(one, given)) {
      auto ten = 10 * worker;
      CHECK(
        part
        == nest{7, {"text", ten + 1}, {{"a", {ten + 2}}, {"b", {}}}, {ten + 3, ten + 4}, ten + 5});
    }
  }

  TEST_CASE("values for each worker may be nests, and hold values for each worker again") {
    team one;
    per_worker_values<row> rows{{{}, {1}, {1, 2}}};
    using nest = std::pair<row, row>;
    for (const auto& [worker, part] :
         echoed<nest>(one, std::pair{rows, std::vector{per_worker_values<per_worker_values<int>>{
                                             {tens(1), tens(2), tens(3)}}}})) {
      CHECK(part.first.size() == static_cast<size_t>(worker));
      CHECK(part.second == row{10 * worker + worker + 1});
    }
  }

  TEST_CASE("a struct for each worker is given whole, in a list, too") {
    team one;
    auto function
      = one.coordinator.make_function("add", [](closure_context&, std::vector<outputs> given) {
          return given.at(0).first + given.at(0).second;
        });
    std::vector<per_worker_values<outputs>> given{{{{1, 2}, {3, 4}, {5, 6}}}};
    auto sum = one.coordinator.fetch(one.coordinator.schedule(function, given));
    CHECK((sum == 3 || sum == 7 || sum == 11));
  }

  TEST_CASE("arrays for each worker travel by worker") {
    team one;
    auto function = one.coordinator.make_function(
      "which", [](closure_context& context, const std::vector<tensor>& given) {
        return numbers_of(given.at(1)).at(0) - context.worker_index();
      });
    std::vector<remote_value<double>> results;
    std::vector<per_worker_values<tensor>> given{{{scalar(9), scalar(9), scalar(9)}},
                                                 {{scalar(0), scalar(1), scalar(2)}}};
    for (uint32_t call = 0; call < worker_count; ++call)
      results.push_back(one.coordinator.schedule(function, given));
    CHECK(one.coordinator.fetch(results) == numbers{0, 0, 0});
  }

  TEST_CASE("a nest with values for another number of workers is refused") {
    team one;
    auto function = one.coordinator.make_function("echo", echo<row>());
    auto line = [&](const auto& given) {
      return refusal_of([&] { static_cast<void>(one.coordinator.schedule(function, given)); })
        .message;
    };
    CHECK(line(std::vector{tens(1), per_worker_values<int>{{1, 2}}})
          == "there are 2 values for 3 workers; give one for each");
    CHECK(line(per_worker_values<row>{}) == "there are 0 values for 3 workers; give one for each");
    CHECK(line(std::vector<per_worker_values<int>>{}).empty()); // nothing, for all alike
    one.coordinator.join();
  }

  TEST_CASE("the iterators of workers stand in nests, and each worker reads its own") {
    team one;
    auto ones = one.coordinator.create_per_worker_dataset(counting(1));
    auto tens = one.coordinator.create_per_worker_dataset(
      [](const input_context& where) { return counting(10 * (where.input_pipeline_id + 1)); });
    auto next = one.coordinator.make_function(
      "next", [](closure_context& context, const std::pair<int, iterators>& given) {
        auto first = number_of(given.second.at(0));
        auto second = number_of(given.second.at(1));
        CHECK(second == 10 * first * (context.worker_index() + 1));
        return std::pair{context.worker_index(), first + given.first};
      });
    std::pair given{1000, std::vector{ones.iterator(), tens.iterator()}};
    std::map<uint32_t, int> calls;
    for (uint32_t call = 0; call <= worker_count; ++call) {
      auto [worker, number] = one.coordinator.fetch(one.coordinator.schedule(next, given));
      CHECK(number == 1000 + calls[worker]++);
    }
  }

  TEST_CASE("resources that workers have made stand in nests by name, and are changed there") {
    using counters = std::map<std::string, std::reference_wrapper<int>>;
    team one;
    auto make = [](const input_context&) { return 0; };
    auto first = one.coordinator.create_per_worker_resource(make);
    auto second = one.coordinator.create_per_worker_resource(make);
    auto count = one.coordinator.make_function(
      "count", [](closure_context& context, const counters& given, const std::optional<int>& by) {
        given.at("b").get() += by.value();
        return std::pair{context.worker_index(), 100 * given.at("a") + given.at("b")};
      });
    std::map<std::string, per_worker_resource<int>> given{{"a", first}, {"b", second}};
    std::map<uint32_t, int> sums;
    for (uint32_t call = 0; call < 2 * worker_count; ++call) {
      std::optional by{per_worker_values<int>{{1, 2, 3}}};
      auto [worker, sum] = one.coordinator.fetch(one.coordinator.schedule(count, given, by));
      CHECK(sum == (sums[worker] += static_cast<int>(worker) + 1));
    }
  }

  TEST_CASE("an input in a nest that cannot be made fails the call") {
    team one;
    auto data = one.coordinator.create_per_worker_dataset(
      [](const input_context&) -> dataset { throw std::runtime_error("no such\nfile"); });
    auto next = one.coordinator.make_function(
      "next", [](closure_context&, const iterators& given) { return given.size(); });
    static_cast<void>(one.coordinator.schedule(next, std::vector{data.iterator()}));
    CHECK(refusal_of([&] { one.coordinator.join(); }).message
          == "'next' failed at worker 0: its input could not be made: no such file");
    CHECK(one.coordinator.fetch(one.coordinator.schedule(next, std::vector<per_worker_iterator>{}))
          == 0);
  }

  TEST_CASE("an input of another coordinator is refused in a nest, too") {
    team one;
    team other;
    auto data = other.coordinator.create_per_worker_dataset(counting(1));
    auto next = one.coordinator.make_function(
      "next", [](closure_context&, const iterators& given) { return given.size(); });
    CHECK(refusal_of([&] {
            static_cast<void>(one.coordinator.schedule(next, std::vector{data.iterator()}));
          })
          == error{errc::invalid_argument, "an input belongs to another coordinator; make it with "
                                           "the one that schedules"});
  }

  TEST_CASE("fetch maps remote values for each worker, and leaves other values for each") {
    team one;
    auto twice = one.coordinator.make_function(
      "twice", [](closure_context&, int number) { return 2 * number; });
    per_worker_values<remote_value<int>> remote;
    for (auto number : tens(1).values)
      remote.values.push_back(one.coordinator.schedule(twice, number));
    auto [fetched, left] = one.coordinator.fetch(std::pair{remote, tens(1)});
    CHECK(fetched.values == row{2, 22, 42});
    CHECK(left.values == tens(1).values);
    // Fetched values may be given to each worker again.
    for (auto [worker, given] : echoed<int>(one, fetched))
      CHECK(given == 20 * worker + 2);
  }
}

} // namespace worker_nest_test
