// SPDX-License-Identifier: Apache-2.0
// The threads world: CAF's sharing scheduler for messages, a oneTBB arena for computing, the real
// clock.
#include "actors/caf_compat.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world.hpp"

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>
#include <caf/send.hpp>
#include <caf/thread_hook.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <thread>

namespace troupe {

namespace {

// Idle workers of CAF's default policy sleep: a local request takes 70 us there, 5 us under
// `sharing`.
struct unlogged_threads final : caf::thread_hook {
  void init(caf::actor_system& /*system*/) override {}

  void thread_started() override { leave_unlogged(); }

  void thread_terminates() override {}
};

struct threads_config : observed_system_config {
  threads_config(size_t scheduler_threads, observatory* observed)
    : observed_system_config(observed) {
    set("scheduler.policy", caf::atom("sharing"));
    set("scheduler.max-threads", scheduler_threads);
    add_thread_hook<unlogged_threads>();
  }
};

class threads_world final : public world::implementation {
public:
  explicit threads_world(const world_options& options)
    : began_(clock::now()),
      computing_threads_(options.threads > 0 ? options.threads
                                             : std::max(1U, std::thread::hardware_concurrency())),
      config_(computing_threads_, options.observed ? &observatory : nullptr), system_(config_),
      // oneTBB counts the caller among its threads; ours never computes. One more is for files.
      parallelism_(tbb::global_control::max_allowed_parallelism, computing_threads_ + 2),
      // No slot is reserved for a caller: nobody computes in this arena but its own threads.
      arena_(static_cast<int>(computing_threads_), 0), files_(1, 0) {
    seed = options.seed;
  }

  ~threads_world() override {
    std::unique_lock lock{mutex_};
    all_done_.wait(lock, [this] { return under_way_ == 0; });
  }

  threads_world(const threads_world&) = delete;
  threads_world& operator=(const threads_world&) = delete;

  caf::actor_system& system() override { return system_; }

  [[nodiscard]] job_time now() const override { return clock::now() - began_.load(); }

  void set_clock(job_time time) override { began_ = began_.load() - (time - now()); }

  void submit(std::function<void()> work) override { enqueue(arena_, std::move(work)); }

  void submit_io(std::function<void()> work) override { enqueue(files_, std::move(work)); }

  void call(std::function<void()> action) override { action(); }

  void send_last(const caf::actor& whom, caf::message what) override {
    caf::anon_send(whom, std::move(what));
  }

  expected<void> run_until(std::future<void>& done, job_time patience) override {
    if (patience == world::for_ever)
      done.wait();
    else if (done.wait_for(patience) != std::future_status::ready)
      return fail(errc::deadline_exceeded, "it is not done in time");
    return {};
  }

private:
  using clock = std::chrono::steady_clock;

  // An arena does not wait for what it was given, and that refers to this world.
  void enqueue(tbb::task_arena& where, std::function<void()> work) {
    {
      std::lock_guard guard{mutex_};
      ++under_way_;
    }
    where.enqueue([this, work = std::make_shared<std::function<void()>>(std::move(work))] {
      (*work)();
      *work = {}; // what it holds goes before the world does
      std::lock_guard guard{mutex_};
      if (--under_way_ == 0) all_done_.notify_all();
    });
  }

  std::atomic<clock::time_point> began_; ///< First: actors ask for the time as long as they live.
  unsigned computing_threads_;
  threads_config config_;
  caf::actor_system system_;
  tbb::global_control parallelism_;
  tbb::task_arena arena_;
  tbb::task_arena files_; ///< A single thread, so that writes keep their order.
  std::mutex mutex_;
  std::condition_variable all_done_;
  size_t under_way_ = 0; ///< Pieces of work in either arena.
};

} // namespace

std::unique_ptr<world::implementation> make_threads_world(const world_options& options) {
  return std::make_unique<threads_world>(options);
}

} // namespace troupe
