// SPDX-License-Identifier: Apache-2.0
// Goal: a coordinator's workers are processes, which may be lost and come back. Method: threads for
// processes, joined without sockets or with; nodes are lost while functions wait at a gate.
#include "actors/net/cluster_placement.hpp"
#include "strategies/coordinator/cluster_coordinator.hpp"
#include "strategies/jobs/checkpoint.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "tests/doctest.hpp"
#include "tests/scratch_folder.hpp"
#include "tests/small_arrays.hpp"
#include "tests/strategies/played_network.hpp"
#include "tests/strategies/refusal.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

namespace coordinator_cluster_test {

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

/// A gate for the functions of all processes, which are threads of one process.
struct gate {
  std::atomic<bool> is_open = false;
  std::mutex mutex;
  std::multiset<node_index> waiting; ///< Nodes of functions that have come.

  void come(node_index node) {
    std::lock_guard guard{mutex};
    waiting.insert(node);
  }

  void await(size_t count) {
    auto is_there = [&] {
      std::lock_guard guard{mutex};
      return waiting.size() >= count;
    };
    while (!is_there())
      std::this_thread::sleep_for(1ms);
  }
};

/// The objects of one process; each process makes the same.
struct process {
  process(played_network& cluster, const cluster_layout& layout, node_index node, gate& at,
          coordinator_options options = {})
    : membership(cluster.join(world.system(), node)), placement(layout, *membership, 20s),
      strategy(world, {.replicas = layout.replica_count(), .placement = &placement}),
      counter(strategy.make_variable("counter", scalar(0))),
      own(rules::sgd{.learning_rate = static_cast<double>(node)}),
      coordinator(strategy, std::move(options)),
      data(coordinator.create_per_worker_dataset(
        dataset::from_tensor_slices({array({4}, {1, 2, 3, 4})}))),
      count(coordinator.make_function("count", counting(counter))),
      next(coordinator.make_function("next", reading(node))),
      wait(coordinator.make_function("wait",
                                     [this, node, &at](closure_context& context) {
                                       return wait_at(context, at, node, counter);
                                     })),
      input(coordinator.create_per_worker_resource(
        [node, &at](const input_context&) { return made_at(at, node); })),
      use(coordinator.make_function("use",
                                    [](closure_context&, node_index& made_by) { return made_by; })),
      take(coordinator.make_function(
        "take",
        [this, node, &at](closure_context& context, std::vector<int> mine) -> task<int> {
          auto waiting = wait_at(context, at, node, counter);
          co_await waiting;
          co_return mine.at(1);
        })),
      train(coordinator.make_function("train", [this, node, &at](closure_context& context) {
        return train_at(context, at, node, counter, own);
      })) {}

  static std::function<task<double>(closure_context&, double)> counting(variable counter) {
    return [counter](closure_context& context, double by) -> task<double> {
      auto adding = context.assign_add(counter, by);
      auto value = co_await adding;
      co_return value.values<float>()[0];
    };
  }

  /// Which node has read what.
  static std::function<std::pair<node_index, double>(closure_context&, dataset_iterator&)>
  reading(node_index node) {
    return [node](closure_context&, dataset_iterator& from) {
      auto element = value_or_throw(from.next());
      if (!element) throw failure{{errc::out_of_range, "nothing is left"}};
      return std::pair<node_index, double>{node, element->tensors[0].values<float>()[0]};
    };
  }

  // Reading is where it can be cancelled, and holds no computing thread.
  static task<node_index> wait_at(closure_context& context, gate& at, node_index node,
                                  variable counter) {
    at.come(node);
    while (!at.is_open) {
      auto reading = context.read(counter);
      co_await reading;
      std::this_thread::sleep_for(1ms);
    }
    co_return node;
  }

  // Applies a gradient of -1, and waits: the next call goes to another process.
  static task<node_index> train_at(closure_context& context, gate& at, node_index node,
                                   variable counter, optimizer with) {
    std::vector<gradient_and_variable> gradients{{scalar(-1), counter}};
    auto applying = with.apply_gradients(context, gradients);
    co_await applying;
    auto waiting = wait_at(context, at, node, counter);
    co_await waiting;
    co_return node;
  }

  /// An input that takes as long to make as the gate is closed. It holds a thread meanwhile.
  static node_index made_at(gate& at, node_index node) {
    at.come(node);
    while (!at.is_open)
      std::this_thread::sleep_for(1ms);
    return node;
  }

  troupe::world world = world::threads({.threads = 1});
  std::unique_ptr<troupe::membership> membership;
  cluster_placement placement;
  parameter_server_strategy strategy;
  variable counter;
  optimizer own; ///< Its learning rate is the number of its node.
  cluster_coordinator coordinator;
  per_worker_dataset data;
  coordinated_function<double, double> count;
  coordinated_function<std::pair<node_index, double>, dataset_iterator&> next;
  coordinated_function<node_index> wait;
  per_worker_resource<node_index> input;
  coordinated_function<node_index, node_index&> use;
  coordinated_function<int, std::vector<int>> take;
  coordinated_function<node_index> train;
};

/// The processes of a job that serve, each a thread; the one that leads is the test's.
class job {
public:
  explicit job(cluster_layout wanted, bool has_sockets = false)
    : layout(wanted), cluster(wanted, has_sockets) {}

  ~job() {
    open.is_open = true;
    for (auto& [node, thread] : threads_)
      if (thread.joinable()) thread.join();
  }

  void start(node_index node) {
    stops_[node] = std::stop_source{};
    threads_[node] = std::thread{[this, node, stop = stops_[node].get_token()] {
      auto reason = refusal_of([&] {
        process one{cluster, layout, node, open};
        one.coordinator.serve(stop);
      });
      std::lock_guard guard{mutex_};
      ends_[node] = reason;
    }};
  }

  void start_all() {
    for (node_index node = 0; node < layout.node_count(); ++node)
      if (node != layout.chief_node()) start(node);
  }

  void stop(node_index node) { stops_[node].request_stop(); }

  /// Waits for the end of a process. @returns What its `serve` threw.
  error end_of(node_index node) {
    threads_.at(node).join();
    std::lock_guard guard{mutex_};
    return ends_.at(node);
  }

  process lead() {
    coordinator_options options;
    options.on_warning = [this](const std::string& line) {
      std::lock_guard guard{mutex_};
      warnings_.push_back(line);
    };
    return process{cluster, layout, layout.chief_node(), open, std::move(options)};
  }

  /// Waits until the coordinator has said something like that.
  void await_warning(const std::string& part) {
    auto is_said = [&] {
      std::lock_guard guard{mutex_};
      return std::ranges::any_of(
        warnings_, [&](const std::string& line) { return line.find(part) != std::string::npos; });
    };
    while (!is_said())
      std::this_thread::sleep_for(1ms);
  }

  cluster_layout layout;
  played_network cluster;
  gate open;

private:
  std::mutex mutex_;
  std::map<node_index, error> ends_;
  std::vector<std::string> warnings_;
  std::map<node_index, std::stop_source> stops_;
  std::map<node_index, std::thread> threads_;
};

// Nodes: a ps, the process that leads and works, and another that works.
const cluster_layout two_workers{.ps = 1, .workers = 2};
constexpr node_index ps = 0;
constexpr node_index first = 1;
constexpr node_index second = 2;

// Where functions ran that had to run at the same time.
std::multiset<node_index> places_of(job& of, process& chief, size_t count) {
  std::vector<remote_value<node_index>> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(chief.coordinator.schedule(chief.wait));
  of.open.await(count);
  of.open.is_open = true;
  auto places = chief.coordinator.fetch(values);
  return {places.begin(), places.end()};
}

// A worker is lost while it runs something, and started again.
void lose_and_return(job& of, const std::function<void()>& lose, errc expected_end) {
  of.start_all();
  auto chief = of.lead();
  auto iterator = chief.data.iterator();
  std::vector<remote_value<node_index>> waits;
  for (int i = 0; i < 2; ++i)
    waits.push_back(chief.coordinator.schedule(chief.wait));
  of.open.await(2);
  lose();
  of.await_warning("worker 1 is gone");
  of.open.is_open = true;
  CHECK(of.end_of(second).code == expected_end);
  chief.coordinator.join();
  for (auto place : chief.coordinator.fetch(waits))
    CHECK(place == first);
  // The one that is left has read something.
  for (auto number : {1, 2})
    CHECK(chief.coordinator.fetch(chief.coordinator.schedule(chief.next, iterator))
          == std::pair<node_index, double>{first, number});
  of.open.is_open = false;
  of.open.waiting.clear();
  std::this_thread::sleep_for(200ms); // lives of a node are told apart by tenths of a second
  of.start(second);
  of.await_warning("worker 1 is back");
  CHECK(places_of(of, chief, 2) == std::multiset<node_index>{first, second});
  // One reads on, the other from the beginning.
  std::vector<remote_value<std::pair<node_index, double>>> reads;
  std::map<node_index, std::vector<double>> read;
  while (read.size() < 2) {
    auto [node, number]
      = chief.coordinator.fetch(chief.coordinator.schedule(chief.next, chief.data.iterator()));
    read[node].push_back(number);
    CHECK(number == 1);
  }
  auto [node, number] = chief.coordinator.fetch(chief.coordinator.schedule(chief.next, iterator));
  CHECK(number == (node == first ? 3 : 1));
}

} // namespace

TEST_SUITE("strategies/coordinator/coordinator_cluster") {
  TEST_CASE("processes work for the one that leads, which works, too") {
    job of{two_workers};
    of.start_all();
    {
      auto chief = of.lead();
      CHECK(chief.coordinator.num_workers() == 2);
      CHECK(places_of(of, chief, 2) == std::multiset<node_index>{first, second});
      for (int i = 0; i < 20; ++i)
        static_cast<void>(chief.coordinator.schedule(chief.count, 2.0));
      chief.coordinator.join();
      CHECK(numbers_of(chief.strategy.read(chief.counter)) == numbers{40});
    }
    for (auto node : {ps, second})
      CHECK(of.end_of(node) == error{});
  }

  TEST_CASE("optimizers of several processes take turns on a variable, each by its rule") {
    job of{two_workers};
    of.start_all();
    auto chief = of.lead();
    for (int round = 1; round <= 3; ++round) {
      of.open.is_open = false;
      of.open.waiting.clear();
      for (int i = 0; i < 2; ++i)
        static_cast<void>(chief.coordinator.schedule(chief.train));
      of.open.await(2);
      of.open.is_open = true;
      chief.coordinator.join();
      CHECK(numbers_of(chief.strategy.read(chief.counter)) == numbers{3.0 * round});
    }
  }

  TEST_CASE("a process that is called chief only coordinates") {
    job of{{.has_chief = true, .ps = 1, .workers = 2, .replicas_per_worker = 2}};
    of.start_all();
    {
      auto chief = of.lead();
      CHECK(chief.coordinator.num_workers() == 4);
    }
    for (node_index node : {1, 2, 3})
      CHECK(of.end_of(node) == error{});
  }

  TEST_CASE("a coordinator refuses a cluster without workers") {
    job of{{.has_chief = true, .workers = 0}};
    CHECK(refusal_of([&] { of.lead(); }).code == errc::failed_precondition);
  }

  TEST_CASE("the call of a lost worker goes to another, and it comes back with new inputs") {
    job of{two_workers};
    lose_and_return(
      of, [&] { of.cluster.direct.lose(second); }, errc::unavailable);
  }

  TEST_CASE("a worker that has left comes back with new inputs, over sockets, too") {
    job of{two_workers, true};
    lose_and_return(
      of, [&] { of.stop(second); }, errc::none);
  }

  TEST_CASE(
    "arguments for each worker become those of the worker that repeats a call, in nests, too") {
    job of{two_workers};
    of.start_all();
    auto chief = of.lead();
    std::vector<per_worker_values<int>> given{{{1, 2}}, {{10, 20}}};
    std::vector<remote_value<int>> taken;
    for (int i = 0; i < 2; ++i)
      taken.push_back(chief.coordinator.schedule(chief.take, given));
    of.open.await(2);
    of.cluster.direct.lose(second);
    of.await_warning("worker 1 is gone");
    of.open.is_open = true;
    CHECK(chief.coordinator.fetch(taken) == std::vector<int>{10, 10});
  }

  TEST_CASE("a result that a worker returned before it was lost can still be fetched") {
    job of{two_workers};
    of.start_all();
    auto chief = of.lead();
    std::vector<remote_value<node_index>> values;
    for (int i = 0; i < 2; ++i)
      values.push_back(chief.coordinator.schedule(chief.wait));
    of.open.await(2);
    of.open.is_open = true;
    chief.coordinator.join();
    of.cluster.direct.lose(second);
    of.await_warning("worker 1 is gone");
    auto places = chief.coordinator.fetch(values);
    CHECK(std::multiset<node_index>(places.begin(), places.end())
          == std::multiset<node_index>{first, second});
  }

  TEST_CASE(
    "a worker that is lost while it makes an input makes it anew, its call goes elsewhere") {
    constexpr node_index stays = 1; // the chief's process, which makes no calls, is node 0
    constexpr node_index leaves = 2;
    job of{{.has_chief = true, .workers = 2}};
    of.start_all();
    auto chief = of.lead();
    std::vector<remote_value<node_index>> places;
    for (int i = 0; i < 2; ++i)
      places.push_back(chief.coordinator.schedule(chief.use, chief.input));
    of.open.await(2); // both make theirs
    of.cluster.direct.lose(leaves);
    of.await_warning("worker 1 is gone");
    of.open.is_open = true;
    CHECK(of.end_of(leaves).code == errc::unavailable);
    for (auto place : chief.coordinator.fetch(places))
      CHECK(place == stays);
    std::this_thread::sleep_for(200ms); // lives of a node are told apart by tenths of a second
    of.start(leaves);
    of.await_warning("worker 1 is back");
    while (chief.coordinator.fetch(chief.coordinator.schedule(chief.use, chief.input)) != leaves) {
    }
    CHECK(of.open.waiting == std::multiset<node_index>{stays, leaves, leaves});
  }

  TEST_CASE("without workers join waits for one") {
    job of{{.has_chief = true, .workers = 1}};
    auto chief = of.lead();
    auto result = chief.coordinator.schedule(chief.count, 1.0);
    CHECK(refusal_of([&] { chief.coordinator.join(50ms); }).code == errc::deadline_exceeded);
    CHECK_FALSE(chief.coordinator.done());
    of.start(1);
    chief.coordinator.join();
    CHECK(chief.coordinator.fetch(result) == 1);
  }

  TEST_CASE("the loss of a parameter server is thrown, naming it") {
    job of{two_workers};
    of.start_all();
    auto chief = of.lead();
    static_cast<void>(chief.coordinator.schedule(chief.count, 1.0));
    chief.coordinator.join();
    of.cluster.direct.lose(ps);
    auto reason = refusal_of([&] { // either call, as soon as the loss is known
      static_cast<void>(chief.coordinator.schedule(chief.count, 1.0));
      chief.coordinator.join();
    });
    CHECK(reason.code == errc::unavailable);
    CHECK(reason.message.find("node 'ps:0' is gone") != std::string::npos);
  }

  TEST_CASE("a worker that alone has lost a parameter server ends, and the others go on") {
    job of{two_workers};
    of.start_all();
    auto chief = of.lead();
    static_cast<void>(chief.coordinator.schedule(chief.count, 1.0));
    chief.coordinator.join();
    CHECK(places_of(of, chief, 2).size() == 2); // all are there
    of.cluster.direct.cut(second, ps);
    auto reason = of.end_of(second);
    CHECK(reason.code == errc::unavailable);
    CHECK(reason.message.find("ps:0") != std::string::npos);
    of.await_warning("worker 1 is gone");
    auto result = chief.coordinator.schedule(chief.count, 1.0);
    chief.coordinator.join();
    CHECK(chief.coordinator.fetch(result) == 2);
  }

  TEST_CASE("a worker that serves hears of it when the process that leads is gone") {
    job of{two_workers};
    of.start_all();
    {
      auto chief = of.lead();
      static_cast<void>(chief.coordinator.schedule(chief.count, 1.0));
      chief.coordinator.join();
      CHECK(places_of(of, chief, 2).size() == 2); // all are there
      of.cluster.direct.lose(first);
    }
    for (auto node : {ps, second}) {
      auto reason = of.end_of(node);
      CHECK(reason.code == errc::unavailable);
      CHECK(reason.message.find("worker:0") != std::string::npos);
    }
  }

  TEST_CASE("only the process that leads schedules") {
    job of{two_workers};
    of.start(ps);
    std::thread worker{[&] {
      process one{of.cluster, two_workers, second, of.open};
      CHECK_FALSE(one.coordinator.leads());
      CHECK(refusal_of([&] { static_cast<void>(one.coordinator.schedule(one.count, 1.0)); }).code
            == errc::wrong_context);
      CHECK(refusal_of([&] { one.coordinator.join(); }).code == errc::wrong_context);
      one.coordinator.serve();
    }};
    {
      auto chief = of.lead();
      static_cast<void>(chief.coordinator.schedule(chief.count, 1.0));
      chief.coordinator.join();
    }
    worker.join();
  }

  TEST_CASE(
    "a state that is restored before its table is made goes to the processes that hold it") {
    scratch_folder folder;
    numbers saved{1, 2, 3, 4, 5};
    {
      auto world = world::virtual_time();
      parameter_server_strategy alone{world};
      static_cast<void>(alone.make_variable("table", array({5}, saved)));
      save_checkpoint(alone, folder.path(), 7);
    }
    const cluster_layout layout{.ps = 2, .workers = 2};
    played_network cluster{layout, false};
    auto live = [&](node_index node) {
      auto world = world::threads({.threads = 1});
      auto membership = cluster.join(world.system(), node);
      cluster_placement placement{layout, *membership, 20s};
      parameter_server_strategy strategy{world, {.placement = &placement}};
      auto leads = placement.leads(); // and only the process that leads restores
      if (leads) CHECK(restore_checkpoint(strategy, folder.path()) == 7);
      auto table
        = sharded_variable::make(strategy, "table", zeros({5}), fixed_shards_partitioner(2));
      cluster_coordinator coordinator{strategy};
      auto read = coordinator.make_function(
        "read", [table](closure_context& context) { return table.read(context); });
      if (!leads) return coordinator.serve();
      CHECK_FALSE(table.shards()[0].is_here());
      CHECK(numbers_of(coordinator.fetch(coordinator.schedule(read))) == saved);
    };
    std::vector<std::thread> others;
    for (node_index node = 0; node < layout.node_count(); ++node)
      if (node != layout.chief_node()) others.emplace_back(live, node);
    live(layout.chief_node());
    for (auto& other : others)
      other.join();
  }

  TEST_CASE("a function that another process does not know fails by its name") {
    job of{{.has_chief = true, .workers = 1}};
    of.start(1);
    auto chief = of.lead();
    auto unknown = chief.coordinator.make_function("unknown", [](closure_context&) {});
    static_cast<void>(chief.coordinator.schedule(unknown));
    CHECK(refusal_of([&] { chief.coordinator.join(); }).message
          == "'unknown' failed at worker 0: there is no function 'unknown' here; make it in all "
             "processes, before they serve");
  }
}

} // namespace coordinator_cluster_test
