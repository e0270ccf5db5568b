// SPDX-License-Identifier: Apache-2.0
// The virtual world: CAF's testing scheduler on one thread, time that passes only when nothing else
// is left to do.
#include "actors/world.hpp"
#include "kernels/random.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct virtual_config : caf::actor_system_config {
  virtual_config() { set("scheduler.policy", caf::atom("testing")); }
};

class virtual_world final : public world::implementation {
public:
  explicit virtual_world(const world_options& options)
    : system_(config_),
      scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
      began_(scheduler_.clock().now()), interleaving_(random_key{options.seed, "interleaving"}) {
    seed = options.seed;
  }

  // Actors that the job left behind get the messages that end them.
  ~virtual_world() override {
    while (scheduler_.has_job())
      scheduler_.run_once();
  }

  caf::actor_system& system() override { return system_; }

  [[nodiscard]] job_time now() const override { return scheduler_.clock().now() - began_; }

  void submit(std::function<void()> work) override { work(); }

  void call(std::function<void()> action) override {
    std::lock_guard guard{calls_mutex_};
    calls_.push_back(std::move(action));
    has_calls_ = true;
  }

  expected<void> run_until(std::future<void>& done) override {
    while (done.wait_for(std::chrono::seconds{0}) != std::future_status::ready) {
      if (has_calls_)
        run_calls();
      else if (scheduler_.has_job())
        run_one_job();
      else if (!let_time_pass())
        return fail(errc::stalled,
                    "the virtual world has nothing left to do, and the job is not done");
    }
    return {};
  }

private:
  void run_calls() {
    std::vector<std::function<void()>> calls;
    {
      std::lock_guard guard{calls_mutex_};
      calls.swap(calls_);
      has_calls_ = false;
    }
    for (auto& call : calls)
      call();
  }

  // All that is due at one moment becomes a job before the first of it runs; which runs first is
  // then drawn from the seed. Messages between one pair of actors stay in order.
  void run_one_job() {
    auto& jobs = scheduler_.jobs;
    if (jobs.size() > 1) std::swap(jobs.front(), jobs[interleaving_.below(jobs.size())]);
    scheduler_.run_once();
  }

  bool let_time_pass() {
    if (!scheduler_.trigger_timeout()) return false;
    scheduler_.advance_time(caf::timespan{0});
    return true;
  }

  virtual_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  caf::actor_clock::time_point began_;
  random_stream interleaving_;

  std::mutex calls_mutex_;
  std::vector<std::function<void()>> calls_;
  std::atomic<bool> has_calls_ = false;
};

} // namespace

std::unique_ptr<world::implementation> make_virtual_world(const world_options& options) {
  return std::make_unique<virtual_world>(options);
}

} // namespace troupe
