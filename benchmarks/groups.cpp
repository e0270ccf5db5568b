// SPDX-License-Identifier: Apache-2.0
// The cost of asking a group. `groups`: 64 members of this process, beside bare requests of CAF,
// in turns. As a task of a cluster: one member in each process, asked by the chief, which prints a
// number a line for groups.py.
#include "actors/groups/group.hpp"
#include "actors/net/network_messages.hpp"
#include "actors/observing/observed.hpp"
#include "benchmarks/echo.capnp.h"
#include "benchmarks/stopwatch.hpp"
#include "messages/own_message.hpp"
#include "messages/tensor_message.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server_groups.hpp"

#include <caf/typed_response_promise.hpp>

#include <cstdio>
#include <functional>
#include <future>
#include <vector>

using namespace troupe;

namespace {

// ---- within a process ----

constexpr int local_members = 64;
constexpr int local_rounds = 300;

using doubler_actor = caf::typed_actor<caf::replies_to<int>::with<int>>;

struct doubler_state {
  static inline const char* name = "doubler";
};

doubler_actor::behavior_type doubler(observed_pointer<doubler_actor, doubler_state> /*self*/) {
  return {[](int number) { return 2 * number; }};
}

// Has an actor call `round(self, next)` so many times, one after the other. @returns Seconds each.
template <class Round>
double seconds_of_rounds(world& world, Round round) {
  std::promise<double> measured;
  world.system().spawn([&](caf::event_based_actor* self) {
    auto left = std::make_shared<int>(local_rounds);
    auto next = std::make_shared<std::function<void()>>();
    auto begin = clock_type::now();
    *next = [=, &measured] {
      if ((*left)-- > 0) return round(self, [next] { std::function<void()>{*next}(); });
      measured.set_value(seconds_since(begin) / local_rounds);
      *next = nullptr;
    };
    std::function<void()>{*next}();
  });
  return measured.get_future().get();
}

void within_a_process() {
  auto world = world::threads();
  std::vector<doubler_actor> members;
  for (int i = 0; i < local_members; ++i)
    members.push_back(world.system().spawn(doubler));
  group all{world, "doubler", members};
  auto bare = [&](caf::event_based_actor* self, const std::function<void()>& over) {
    auto answers = std::make_shared<std::vector<int>>(members.size());
    auto missing = std::make_shared<size_t>(members.size());
    for (size_t i = 0; i < members.size(); ++i)
      self
        ->request(members[i], caf::infinite, 1) // members live as long as the world
        .then([=](int answer) {
          (*answers)[i] = answer;
          if (--*missing == 0) over();
        });
  };
  auto grouped = [&](caf::event_based_actor* self, const std::function<void()>& over) {
    auto asking = all.ask<int>(1);
    asking.then(self, [over](const expected<group_answers<int>>& answers) {
      if (answers && answers->is_enough()) over();
    });
  };
  std::vector<double> ratios;
  std::vector<double> times;
  for (int turn = 0; turn < 15; ++turn) {
    auto limit = seconds_of_rounds(world, bare);
    times.push_back(seconds_of_rounds(world, grouped));
    ratios.push_back(times.back() / limit);
  }
  std::printf("ask %d actors of this process and gather: %.1f us, %.2f of bare CAF requests\n",
              local_members, 1e6 * median(times), median(ratios));
  all.end();
}

// ---- over processes ----

using echo_actor = caf::typed_actor<caf::replies_to<msg<bench::Echo>>::with<msg<bench::Echo>>>;

struct echo_state {
  static inline const char* name = "echo";
};

echo_actor::behavior_type echo(observed_pointer<echo_actor, echo_state> self) {
  return {[self](const msg<bench::Echo>& message) {
    auto promise = self->make_response_promise<msg<bench::Echo>>();
    if (!message.reader().getUnanswered()) promise.deliver(message);
    return promise;
  }};
}

msg<bench::Echo> make_echo(const tensor& carried, bool unanswered = false) {
  own_message_builder<bench::Echo> builder;
  builder.body.setUnanswered(unanswered);
  write_tensor(*builder.storage, builder.body.initTensor(), carried);
  return std::move(builder).finish();
}

double seconds_to_gather(const group<echo_actor>& all, int64_t bytes, int rounds) {
  auto question = make_echo(zeros({bytes / 4}));
  std::vector<double> times;
  for (int i = 0; i < rounds; ++i) {
    auto begin = clock_type::now();
    static_cast<void>(all.ask<msg<bench::Echo>>(question).wait().require());
    times.push_back(seconds_since(begin));
  }
  return median(times);
}

// So many messages to all, until all have them: the answers to a question come behind them.
double seconds_to_tell(const group<echo_actor>& all, int64_t bytes, int messages) {
  auto message = make_echo(zeros({bytes / 4}));
  auto question = make_echo(zeros({1}));
  std::vector<double> times;
  for (int i = 0; i < 30; ++i) {
    auto begin = clock_type::now();
    for (int j = 0; j < messages; ++j)
      all.tell(message);
    static_cast<void>(all.ask<msg<bench::Echo>>(question).wait().require());
    times.push_back(seconds_since(begin) / messages);
  }
  return median(times);
}

void preside(world& world, server& server) {
  auto tasks = server.trainers();
  tasks.erase(tasks.begin()); // the chief asks
  auto all = value_or_throw(find_group<echo_actor>(world, server, "echo", tasks));
  std::printf("ready %zu\n", all.size());
  auto one = all.at("task", 0);
  std::printf("round_trip %g\n", seconds_to_gather(one, 4, 1000));
  std::printf("gather %g\n", seconds_to_gather(all, 4, 300));
  std::printf("broadcast %g\n", seconds_to_tell(all, 4, 100));
  std::printf("broadcast_1MB %g\n", seconds_to_tell(all, 1'000'000, 1));
  std::printf("round_trip_1MB %g\n", seconds_to_gather(one, 1'000'000, 50));
  std::printf("round_trip_100MB %g\n", seconds_to_gather(one, 100'000'000, 5));
  std::fflush(stdout);
  auto waiting = all.stream<msg<bench::Echo>>(make_echo(zeros({1}), true));
  auto lost = waiting.next(); // groups.py kills a process now
  auto now = std::chrono::system_clock::now().time_since_epoch();
  std::printf("lost %s %.6f\n", lost ? lost->name.c_str() : "none",
              std::chrono::duration<double>(now).count());
}

void over_processes() {
  auto cluster = resolve({}, process_environment());
  auto world = world::threads();
  network_messages known;
  known.add<bench::Echo>("bench.Echo");
  server server{world, cluster, {.messages = known}};
  echo_actor own = world.system().spawn(echo);
  std::shared_ptr<void> end{
    nullptr, [own](void*) { caf::anon_send_exit(own, caf::exit_reason::user_shutdown); }};
  publish_members(server, "echo", std::vector{own});
  if (server.is_chief())
    preside(world, server);
  else
    value_or_throw(server.join());
}

} // namespace

int main() {
  try {
    if (std::getenv("TF_CONFIG") != nullptr)
      over_processes();
    else
      within_a_process();
    return 0;
  } catch (const failure& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
  }
}
