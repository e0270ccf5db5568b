// SPDX-License-Identifier: Apache-2.0
// Which program goes on, and which wait.
#include "simulation/virtual_programs.hpp"

#include "messages/assert.hpp"

#include <caf/actor.hpp>
#include <caf/message.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace troupe {

namespace {

/// One of two threads has it, and goes on.
class baton {
public:
  /// Thread: the one that has it.
  void pass() {
    {
      std::lock_guard guard{mutex_};
      is_here_ = true;
    }
    come_.notify_one();
  }

  void await() {
    std::unique_lock lock{mutex_};
    come_.wait(lock, [this] { return is_here_; });
    is_here_ = false;
  }

private:
  std::mutex mutex_;
  std::condition_variable come_;
  bool is_here_ = false;
};

bool is_ready(const std::future<void>& done) {
  return done.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

} // namespace

struct virtual_programs::program {
  [[nodiscard]] bool waits_no_more(job_time now) const {
    return awaited == nullptr || is_ready(*awaited) || now - began > timeout;
  }

  std::string name;
  std::unique_ptr<world> own; ///< As its process has it.
  bool is_stopped = false;
  bool has_ended = false;
  std::future<void>* awaited = nullptr; ///< Null: it has yet to begin.
  job_time began{0};                    ///< Its wait.
  job_time timeout{0};
  bool has_stalled = false;
  baton to_program;
  baton to_stage;
  std::thread thread;
};

/// The virtual world as one program has it.
class virtual_programs::program_world final : public world::implementation {
public:
  program_world(virtual_programs& programs, program& of) : programs_(programs), of_(of) {
    seed = shared().seed();
  }

  caf::actor_system& system() override { return shared().system(); }

  [[nodiscard]] job_time now() const override { return shared().now(); }

  void set_clock(job_time time) override { shared().set_clock(time); }

  void introduce(uint64_t actor, const std::string& name) override {
    shared().introduce(actor, of_.name + " " + name);
  }

  [[nodiscard]] uint64_t event_count() const override { return shared().event_count(); }

  [[nodiscard]] bool computes_in_place() const override { return shared().computes_in_place(); }

  void submit(std::function<void()> work) override { shared().submit(std::move(work)); }

  void submit_io(std::function<void()> work) override { shared().submit_io(std::move(work)); }

  void call(std::function<void()> action) override { shared().call(std::move(action)); }

  void send_last(const caf::actor& whom, caf::message what) override {
    shared().send_last(whom, std::move(what));
  }

  expected<void> run_until(std::future<void>& done, job_time timeout) override {
    return programs_.wait(of_, done, timeout);
  }

private:
  [[nodiscard]] world& shared() const { return programs_.shared_; }

  virtual_programs& programs_;
  program& of_;
};

virtual_programs::virtual_programs(world& shared) : shared_(shared) {}

virtual_programs::~virtual_programs() {
  play(true);
}

void virtual_programs::add(std::string name, program_body body) {
  auto& one = *programs_.emplace_back(std::make_unique<program>());
  one.name = std::move(name);
  one.own = std::make_unique<world>(std::make_unique<program_world>(*this, one));
  one.thread = std::thread{[&one, body = std::move(body)] {
    one.to_program.await();
    body(*one.own);
    one.has_ended = true;
    one.to_stage.pass();
  }};
}

void virtual_programs::stop(const std::string& name) {
  auto found = std::ranges::find_if(programs_, [&](const auto& one) { return one->name == name; });
  if (found != programs_.end()) (*found)->is_stopped = true;
}

void virtual_programs::play() {
  play(false);
}

void virtual_programs::play(bool with_stopped) {
  while (auto* waiting = first_waiting(with_stopped)) {
    if (auto* ready = first_ready(with_stopped)) {
      let_go_on(*ready);
    } else if (!shared_.make_event()) {
      waiting->has_stalled = true;
      let_go_on(*waiting);
    }
  }
}

virtual_programs::program* virtual_programs::first_ready(bool with_stopped) const {
  auto now = shared_.now();
  for (const auto& one : programs_)
    if (!one->has_ended && (with_stopped || !one->is_stopped) && one->waits_no_more(now))
      return one.get();
  return nullptr;
}

virtual_programs::program* virtual_programs::first_waiting(bool with_stopped) const {
  for (const auto& one : programs_)
    if (!one->has_ended && (with_stopped || !one->is_stopped)) return one.get();
  return nullptr;
}

void virtual_programs::let_go_on(program& one) {
  one.to_program.pass();
  one.to_stage.await();
  if (one.has_ended) one.thread.join();
}

expected<void> virtual_programs::wait(program& one, std::future<void>& done, job_time timeout) {
  TROUPE_ASSERT(std::this_thread::get_id() == one.thread.get_id());
  if (is_ready(done)) return {};
  one.awaited = &done;
  one.began = shared_.now();
  one.timeout = timeout;
  one.to_stage.pass();
  one.to_program.await();
  if (std::exchange(one.has_stalled, false))
    return fail(errc::stalled, "nothing is left to do in the virtual world, and it is not done");
  if (!is_ready(done)) return fail(errc::deadline_exceeded, "it is not done in time");
  return {};
}

} // namespace troupe
