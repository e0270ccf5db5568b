// SPDX-License-Identifier: Apache-2.0
// An all-reduce by communicators, one process for each rank.
//
// all_reduce RANK ADDRESSES BYTES ROUNDS [ALGORITHM [any|in_place]]   rank 0 prints the seconds of
// each round, each rank the processor's seconds of all; ADDRESSES: where each rank listens, as
// host:port,host:port; "any" leaves the order of additions open, "in_place" writes each sum over
// its contribution. TROUPE_SPIN_US as for a server.
#include "actors/collective/collective_group.hpp"
#include "actors/net/cluster_placement.hpp"
#include "actors/net/sockets/socket_network.hpp"
#include "benchmarks/processor_time.hpp"
#include "benchmarks/spin.hpp"
#include "benchmarks/stopwatch.hpp"
#include "messages/errors/failure.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace troupe;

namespace {

// Settings of one process, from its command line.
struct task_settings {
  uint32_t rank = 0;
  std::vector<std::string> addresses;
  int64_t bytes = 0;
  int rounds = 0;
  collective_algorithm algorithm = collective_algorithm::automatic;
  bool fixed_order = true;
  bool in_place = false;
};

collective_algorithm algorithm_of(std::string_view name) {
  constexpr std::array<std::string_view, 7> names{"automatic",        "direct", "chain",     "ring",
                                                  "halving_doubling", "tree",   "all_to_all"};
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw failure{{errc::not_found, fmt::format("no '{}'", name)}};
  return static_cast<collective_algorithm>(found - names.begin());
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream stream{list};
  for (std::string word; std::getline(stream, word, ',');)
    words.push_back(word);
  return words;
}

std::unique_ptr<socket_network> open_network(world& world, const task_settings& task) {
  socket_network_options options{.job = "all_reduce", .self = task.rank, .insecure_network = true};
  options.spin = spin_of_environment();
  for (const auto& address : task.addresses)
    options.nodes.push_back({fmt::format("worker:{}", options.nodes.size()), address});
  return value_or_throw(socket_network::open(world.system(), options));
}

// Makes one call after the other, and sees how long each takes.
struct caller {
  communicator_actor communicator;
  collective_call call;
  int rounds = 0;
  std::vector<double> laps{};
  std::promise<void> over{};

  void next(caf::event_based_actor* self) {
    if (static_cast<int>(laps.size()) == rounds) {
      over.set_value();
      return self->quit();
    }
    self
      ->request(communicator, caf::infinite, call) // the communicator has a deadline
      .then(
        [this, self, begin = clock_type::now()](const collective_result&) {
          laps.push_back(seconds_since(begin));
          next(self);
        },
        [this, self](const caf::error& reason) {
          std::fprintf(stderr, "%s\n", from_caf(reason).message.c_str());
          over.set_value();
          self->quit();
        });
  }
};

void run(const task_settings& task) {
  auto in_process = world::threads({.threads = 1, .observed = false});
  auto network = open_network(in_process, task);
  auto ranks = static_cast<uint32_t>(task.addresses.size());
  cluster_placement placement{{.workers = ranks, .workers_meet = true}, *network};
  auto members = value_or_throw(join_collective_group(in_process, placement, {.size = ranks}));
  caller calls{.communicator = members[task.rank],
               .call = {.kind = collective_kind::all_reduce,
                        .name = "benchmark",
                        .contributions = {zeros({task.bytes / 4})},
                        .algorithm = task.algorithm,
                        .fixed_order = task.fixed_order,
                        .in_place = task.in_place},
               .rounds = task.rounds};
  auto over = calls.over.get_future();
  auto used = processor_seconds();
  auto actor = in_process.system().spawn([&](caf::event_based_actor* self) { calls.next(self); });
  over.wait();
  used = processor_seconds() - used;
  for (auto lap : calls.laps)
    if (task.rank == 0) std::printf("%.9f\n", lap);
  std::printf("processor %.9f\n", used);
  caf::anon_send_exit(members[task.rank], caf::exit_reason::user_shutdown);
  network->leave(std::chrono::seconds{5});
}

} // namespace

int main(int count, char** arguments) {
  if (count < 5) return EXIT_FAILURE;
  std::string_view manner = count > 6 ? arguments[6] : "";
  try {
    run({.rank = static_cast<uint32_t>(std::atoi(arguments[1])),
         .addresses = words_of(arguments[2]),
         .bytes = std::atoll(arguments[3]),
         .rounds = std::atoi(arguments[4]),
         .algorithm = algorithm_of(count > 5 ? arguments[5] : "automatic"),
         .fixed_order = manner != "any",
         .in_place = manner == "in_place"});
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return EXIT_FAILURE;
  }
}
