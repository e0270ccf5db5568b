// SPDX-License-Identifier: Apache-2.0
// The virtual world: one thread, and time that passes only when nothing else is left to do.
#include "actors/interfaces/caf_compat.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/virtual_coordinator.hpp"
#include "actors/world/world.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace {

struct virtual_config : observed_system_config {
  explicit virtual_config(observatory* observed) : observed_system_config(observed) {
    load<virtual_coordinator>();
  }
};

class virtual_world final : public world::implementation {
public:
  explicit virtual_world(const world_options& options)
    : config_(options.observed ? &observatory : nullptr), system_(config_),
      coordinator_(static_cast<virtual_coordinator&>(system_.scheduler())) {
    seed = options.seed;
    coordinator_.set_seed(seed);
  }

  // Actors that the job left behind get the messages that end them.
  ~virtual_world() override {
    while (coordinator_.run_one()) {
    }
  }

  caf::actor_system& system() override { return system_; }

  [[nodiscard]] job_time now() const override {
    return coordinator_.clock().has_errors() ? coordinator_.shown_time() : now_.load();
  }

  void set_clock(job_time time) override {
    coordinator_.clock().set_elapsed(time);
    now_ = time;
  }

  void introduce(uint64_t actor, const std::string& name) override {
    coordinator_.introduce(actor, name);
  }

  [[nodiscard]] uint64_t event_count() const override { return coordinator_.event_count(); }

  [[nodiscard]] bool computes_in_place() const override { return true; }

  void submit(std::function<void()> work) override { work(); }

  void submit_io(std::function<void()> work) override { work(); }

  void call(std::function<void()> action) override {
    std::lock_guard guard{calls_mutex_};
    calls_.push_back(std::move(action));
    has_calls_ = true;
  }

  // A delay of nothing is over when nothing else is left to do at this moment.
  void send_last(const caf::actor& receiver, caf::message message) override {
    caf::delayed_anon_send(receiver, caf::timespan{0}, std::move(message));
  }

  expected<void> run_until(std::future<void>& done, job_time timeout) override {
    leave_unlogged(); // making an actor turned it on again
    auto began = now();
    while (done.wait_for(std::chrono::seconds{0}) != std::future_status::ready) {
      if (!go_on())
        return fail(errc::stalled,
                    "the virtual world has nothing left to do, and the job is not done");
      if (now() - began > timeout) return fail(errc::deadline_exceeded, "it is not done in time");
    }
    return {};
  }

  bool make_event() override {
    leave_unlogged();
    return go_on();
  }

private:
  bool go_on() {
    if (!has_calls_) return coordinator_.run_one() || let_time_pass();
    run_calls();
    return true;
  }

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

  bool let_time_pass() {
    if (!coordinator_.let_time_pass()) return false;
    now_ = coordinator_.clock().elapsed();
    return true;
  }

  virtual_config config_;
  caf::actor_system system_;
  virtual_coordinator& coordinator_;
  std::atomic<job_time> now_{job_time{0}}; ///< Atomic: observers ask from other threads.

  std::mutex calls_mutex_;
  std::vector<std::function<void()>> calls_;
  std::atomic<bool> has_calls_ = false;
};

} // namespace

std::unique_ptr<world::implementation> make_virtual_world(const world_options& options) {
  return std::make_unique<virtual_world>(options);
}

} // namespace troupe
