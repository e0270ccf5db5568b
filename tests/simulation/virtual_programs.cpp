// SPDX-License-Identifier: Apache-2.0
// Threads of programs, of which one at a time goes on.
#include "tests/simulation/virtual_programs.hpp"

#include "messages/errors/assert.hpp"

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

/// Two threads pass it to each other; the one that has it goes on.
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
  baton to_player; ///< To the thread of `play`.
  std::thread thread;
};

/// The virtual world as one program has it.
class virtual_programs::program_world final : public world::implementation {
public:
  program_world(virtual_programs& programs, program& program)
    : programs_(programs), program_(program) {
    seed = shared().seed();
  }

  caf::actor_system& system() override { return shared().system(); }

  [[nodiscard]] job_time now() const override { return shared().now(); }

  void set_clock(job_time time) override { shared().set_clock(time); }

  void introduce(uint64_t actor, const std::string& name) override {
    shared().introduce(actor, program_.name + " " + name);
  }

  [[nodiscard]] uint64_t event_count() const override { return shared().event_count(); }

  [[nodiscard]] bool computes_in_place() const override { return shared().computes_in_place(); }

  void submit(std::function<void()> work) override { shared().submit(std::move(work)); }

  void submit_io(std::function<void()> work) override { shared().submit_io(std::move(work)); }

  void call(std::function<void()> action) override { shared().call(std::move(action)); }

  void send_last(const caf::actor& receiver, caf::message message) override {
    shared().send_last(receiver, std::move(message));
  }

  expected<void> run_until(std::future<void>& done, job_time timeout) override {
    return programs_.wait(program_, done, timeout);
  }

private:
  [[nodiscard]] world& shared() const { return programs_.shared_; }

  virtual_programs& programs_;
  program& program_;
};

virtual_programs::virtual_programs(world& shared) : shared_(shared) {}

virtual_programs::~virtual_programs() {
  play(true);
}

void virtual_programs::add(std::string name, program_body body) {
  auto& added = *programs_.emplace_back(std::make_unique<program>());
  added.name = std::move(name);
  added.own = std::make_unique<world>(std::make_unique<program_world>(*this, added));
  added.thread = std::thread{[&added, body = std::move(body)] {
    added.to_program.await();
    body(*added.own);
    added.has_ended = true;
    added.to_player.pass();
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
  while (auto* waiting = first(with_stopped, false)) {
    if (auto* ready = first(with_stopped, true)) {
      let_go_on(*ready);
    } else if (!shared_.make_event()) {
      waiting->has_stalled = true;
      let_go_on(*waiting);
    }
  }
}

virtual_programs::program* virtual_programs::first(bool with_stopped, bool is_ready) const {
  for (const auto& program : programs_)
    if (!program->has_ended && (with_stopped || !program->is_stopped)
        && (!is_ready || program->waits_no_more(shared_.now())))
      return program.get();
  return nullptr;
}

void virtual_programs::let_go_on(program& program) {
  program.to_program.pass();
  program.to_player.await();
  if (program.has_ended) program.thread.join();
}

expected<void> virtual_programs::wait(program& program, std::future<void>& done, job_time timeout) {
  TROUPE_ASSERT(std::this_thread::get_id() == program.thread.get_id());
  if (is_ready(done)) return {};
  program.awaited = &done;
  program.began = shared_.now();
  program.timeout = timeout;
  program.to_player.pass();
  program.to_program.await();
  if (std::exchange(program.has_stalled, false))
    return fail(errc::stalled, "nothing is left to do in the virtual world, and it is not done");
  if (!is_ready(done)) return fail(errc::deadline_exceeded, "it is not done in time");
  return {};
}

} // namespace troupe
