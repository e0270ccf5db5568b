// SPDX-License-Identifier: Apache-2.0
// The virtual world: CAF's testing scheduler on one thread, time that passes only when nothing else
// is left to do.
#include "actors/observing/observed.hpp"
#include "actors/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduled_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct virtual_config : observed_system_config {
  explicit virtual_config(observatory& observed) : observed_system_config(observed) {
    set("scheduler.policy", caf::atom("testing"));
  }
};

class virtual_world final : public world::implementation {
public:
  explicit virtual_world(const world_options& options)
    : config_(observatory), system_(config_),
      scheduler_(dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler())),
      began_(scheduler_.clock().now()) {
    seed = options.seed;
  }

  // Actors that the job left behind get the messages that end them.
  ~virtual_world() override {
    while (scheduler_.has_job())
      scheduler_.run_once();
  }

  caf::actor_system& system() override { return system_; }

  [[nodiscard]] job_time now() const override { return now_; }

  void set_clock(job_time time) override {
    began_ -= time - now();
    now_ = time;
  }

  void introduce(uint64_t actor, const std::string& name) override {
    identities_[actor] = std::hash<std::string>{}(name);
  }

  [[nodiscard]] uint64_t event_count() const override { return event_count_; }

  void submit(std::function<void()> work) override { work(); }

  void submit_io(std::function<void()> work) override { work(); }

  void call(std::function<void()> action) override {
    std::lock_guard guard{calls_mutex_};
    calls_.push_back(std::move(action));
    has_calls_ = true;
  }

  // A delay of nothing is over when nothing else is left to do at this moment.
  void send_last(const caf::actor& whom, caf::message what) override {
    caf::delayed_anon_send(whom, caf::timespan{0}, std::move(what));
  }

  expected<void> run_until(std::future<void>& done, job_time patience) override {
    auto began = now();
    while (done.wait_for(std::chrono::seconds{0}) != std::future_status::ready) {
      if (has_calls_)
        run_calls();
      else if (!run_one_job() && !let_time_pass())
        return fail(errc::stalled,
                    "the virtual world has nothing left to do, and the job is not done");
      else if (now() - began > patience)
        return fail(errc::deadline_exceeded, "it is not done in time");
    }
    give_back_jobs();
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

  /// An actor with a message, and where the seed ranks it at this moment.
  struct ranked_job {
    uint64_t rank;
    caf::resumable* actor;

    bool operator<(const ranked_job& other) const {
      return rank > other.rank;
    } // the least is first
  };

  // All that is due at one moment becomes a job before the first of it runs. Messages between one
  // pair of actors stay in order.
  bool run_one_job() {
    if (!ready_.empty() || scheduler_.jobs.size() > 1)
      put_first_in_front();
    else if (!scheduler_.has_job())
      return false;
    scheduler_.run_once();
    ++event_count_;
    return true;
  }

  // One message alone, as most are where times are drawn, needs no rank.
  void put_first_in_front() {
    for (auto* actor : std::exchange(scheduler_.jobs, {})) {
      ready_.push_back({rank_of(actor), actor});
      std::push_heap(ready_.begin(), ready_.end());
    }
    std::pop_heap(ready_.begin(), ready_.end());
    scheduler_.jobs.push_front(ready_.back().actor);
    ready_.pop_back();
  }

  // Whoever turns the scheduler between two calls of ours finds everything there.
  void give_back_jobs() {
    for (const auto& job : ready_)
      scheduler_.jobs.push_back(job.actor);
    ready_.clear();
  }

  [[nodiscard]] uint64_t rank_of(caf::resumable* actor) const {
    const auto* known = dynamic_cast<caf::scheduled_actor*>(actor);
    auto identity = known != nullptr ? known->id() : 0;
    if (auto found = identities_.find(identity); found != identities_.end())
      identity = found->second;
    return mix(mix(seed ^ static_cast<uint64_t>(now().count())) ^ identity);
  }

  // Source: the finaliser of SplitMix64; Steele, Lea and Flood, "Fast splittable pseudorandom
  // number generators", 2014.
  static uint64_t mix(uint64_t bits) {
    bits += 0x9e3779b97f4a7c15;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    return bits ^ (bits >> 31);
  }

  bool let_time_pass() {
    if (!scheduler_.trigger_timeout()) return false;
    ++event_count_;
    scheduler_.advance_time(caf::timespan{0});
    now_ = scheduler_.clock().now() - began_;
    return true;
  }

  virtual_config config_;
  caf::actor_system system_;
  caf::scheduler::test_coordinator& scheduler_;
  caf::actor_clock::time_point began_;
  std::atomic<job_time> now_{job_time{0}}; ///< Atomic: who looks on asks from other threads.
  uint64_t event_count_ = 0;
  std::vector<ranked_job> ready_;                     ///< A heap.
  std::unordered_map<uint64_t, uint64_t> identities_; ///< Of actors that were introduced.

  std::mutex calls_mutex_;
  std::vector<std::function<void()>> calls_;
  std::atomic<bool> has_calls_ = false;
};

} // namespace

std::unique_ptr<world::implementation> make_virtual_world(const world_options& options) {
  return std::make_unique<virtual_world>(options);
}

} // namespace troupe
