// SPDX-License-Identifier: Apache-2.0
// How fast jobs are simulated: by the actors of a real job, by the direct engine, and by a bare
// heap of events, which knows the protocol and nothing else, in the same run. All have one thread;
// times are those of the processor, since others may use the machine too.
#include "benchmarks/resident_memory.hpp"
#include "kernels/tensor/huge_pages.hpp"
#include "simulation/distributions/distribution.hpp"
#include "simulation/scenario.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <queue>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

namespace {

constexpr double backups = 0.04;
constexpr uint64_t seed = 1;

/// Events and times of a run.
struct measurement {
  uint64_t events = 0;
  double processor_seconds = 0;
  double virtual_seconds = 0;
};

double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

uint32_t needed_of(uint32_t replicas) {
  return replicas - static_cast<uint32_t>(backups * replicas);
}

computing_time draws() {
  return distribution::parse("exponential(1)").value().times(seed);
}

// ---- the engines ----

measurement with_engine(simulation_engine engine, sync_options sync, uint64_t steps,
                        bool hashes = true) {
  scenario job{.sync = std::move(sync),
               .steps = steps,
               .compute = draws(),
               .seed = seed,
               .engine = engine,
               .hashes = hashes};
  auto begin = std::clock();
  auto report = simulate(job);
  return {report.events, seconds_since(begin),
          std::chrono::duration<double>(report.virtual_time).count()};
}

// ---- the bare heap ----

/// The policy latest_token as a program of three events for each gradient: computed, arrived,
/// token taken.
class bare_heap {
public:
  bare_heap(uint32_t replicas, uint32_t needed, uint64_t steps)
    : needed_(needed), steps_(steps), compute_(draws()), states_(replicas) {}

  measurement run() {
    auto begin = std::clock();
    for (uint32_t replica = 0; replica < states_.size(); ++replica)
      push(kind::token, replica, job_time{0});
    while (step_ < steps_) {
      auto next = events_.top();
      events_.pop();
      now_ = next.time;
      ++count_;
      happen(next);
    }
    return {count_, seconds_since(begin), std::chrono::duration<double>(now_).count()};
  }

private:
  enum class kind : uint8_t { computed, arrived, token };

  struct event {
    job_time time;
    uint64_t number;
    uint32_t replica;
    kind type;

    bool operator<(const event& other) const {
      return std::pair{time, number} > std::pair{other.time, other.number};
    }
  };

  struct state {
    uint64_t step = 0;
    uint64_t draws = 0;
  };

  void push(kind type, uint32_t replica, job_time time) {
    events_.push({time, number_++, replica, type});
  }

  void happen(const event& next) {
    auto& state = states_[next.replica];
    switch (next.type) {
    case kind::token:
      state.step = step_;
      return push(kind::computed, next.replica, now_ + compute_(next.replica, state.draws++));
    case kind::computed:
      return push(kind::arrived, next.replica, now_);
    case kind::arrived:
      return arrive(next.replica, state.step);
    }
  }

  void arrive(uint32_t replica, uint64_t step) {
    if (step < step_) return push(kind::token, replica, now_); // stale
    waiting_.push_back(replica);
    if (waiting_.size() < needed_) return;
    ++step_;
    for (auto waiter : waiting_)
      push(kind::token, waiter, now_);
    waiting_.clear();
  }

  uint32_t needed_;
  uint64_t steps_;
  computing_time compute_;
  std::vector<state> states_;
  std::vector<uint32_t> waiting_;
  std::priority_queue<event> events_;
  uint64_t number_ = 0;
  uint64_t count_ = 0;
  uint64_t step_ = 0;
  job_time now_{0};
};

// ---- the table ----

void print(uint32_t replicas, uint64_t steps, const char* engine, const measurement& best) {
  auto gradients = static_cast<double>(replicas) * static_cast<double>(steps);
  std::printf("  %7u x %-6lu %-24s %11lu %9.0f %10.0f %9.1f %8.0f:1\n", replicas,
              static_cast<unsigned long>(steps), engine, static_cast<unsigned long>(best.events),
              static_cast<double>(best.events) / best.processor_seconds / 1e3,
              1e9 * best.processor_seconds / static_cast<double>(best.events),
              best.processor_seconds / gradients * 1e7,
              best.virtual_seconds / best.processor_seconds);
}

template <class Run>
measurement best_of(int turns, const Run& run) {
  auto best = run();
  for (int turn = 1; turn < turns; ++turn)
    if (auto next = run(); next.processor_seconds < best.processor_seconds) best = next;
  return best;
}

void measure(uint32_t replicas, uint64_t steps, int turns) {
  print(replicas, steps, "bare heap, latest_token", best_of(turns, [=] {
          return bare_heap{replicas, needed_of(replicas), steps}.run();
        }));
  for (auto policy : {sync_policy::latest_token, sync_policy::tensorflow, sync_policy::cancel})
    for (auto engine : {simulation_engine::actors, simulation_engine::direct})
      print(replicas, steps,
            ((engine == simulation_engine::actors ? "actors, " : "direct, ")
             + std::string{to_string(policy)})
              .c_str(),
            best_of(turns, [=] {
              return with_engine(engine, {needed_of(replicas), replicas, policy}, steps);
            }));
}

uint64_t number(const char* text) {
  return std::strtoul(text, nullptr, 10);
}

// For `simulation_models.py`: processor seconds, and the mean step.
int print_direct(bool with_ledger, uint32_t replicas, uint32_t needed, uint64_t steps) {
  auto done = with_engine(simulation_engine::direct, {needed, replicas, sync_policy::cancel}, steps,
                          with_ledger);
  std::printf("%.6f %.6f\n", done.processor_seconds,
              done.virtual_seconds / static_cast<double>(steps));
  return 0;
}

} // namespace

/// Arguments: replicas and steps of one more size, such as 100000 20; or "counts" or "ledger" with
/// replicas, needed gradients and steps, for one run without actors: for what it adds up to, or
/// with the hash of its ledger.
int main(int argument_count, char** arguments) {
  prefer_huge_pages();
  if (argument_count == 5)
    return print_direct(std::string{arguments[1]} == "ledger",
                        static_cast<uint32_t>(number(arguments[2])),
                        static_cast<uint32_t>(number(arguments[3])), number(arguments[4]));
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::printf("96 of 100 gradients needed, exponential times; of the last column's sizes 1e7 "
              "gradients are 10,000 x 1,000\n"
              "  replicas x steps  engine                      events  1e3 ev/s   ns/event  s for "
              "1e7   virtual\n");
  measure(100, 1000, 3);
  measure(1000, 100, 3);
  measure(10'000, 10, 3);
  if (argument_count == 3)
    measure(static_cast<uint32_t>(number(arguments[1])), number(arguments[2]), 1);
  std::printf("  memory at most %.0f MB\n", resident_megabytes_max());
}
