// SPDX-License-Identifier: Apache-2.0
// The threads world: CAF's scheduler with a queue of ours for messages, a oneTBB arena for
// computing, a thread for files, the real clock.
#include "actors/interfaces/caf_compat.hpp"
#include "actors/observing/observed.hpp"
#include "actors/world/endless_work.hpp"
#include "actors/world/sharing_policy.hpp"
#include "actors/world/world.hpp"
#include "messages/errors/throw_failure.hpp"

#include <caf/actor_clock.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/scheduler/coordinator.hpp>
#include <caf/send.hpp>
#include <caf/thread_hook.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <thread>
#include <vector>

namespace troupe {

namespace {

struct unlogged_threads final : caf::thread_hook {
  void init(caf::actor_system& /*system*/) override {}

  void thread_started() override { leave_unlogged(); }

  void thread_terminates() override {}
};

struct threads_config : observed_system_config {
  threads_config(size_t scheduler_threads, observatory* observed)
    : observed_system_config(observed) {
    load<caf::scheduler::coordinator<sharing_policy>>();
    set("scheduler.max-threads", scheduler_threads);
    add_thread_hook<unlogged_threads>();
  }
};

constexpr const char* limit_on_threads = "raise ulimit -u, or the container's limit on processes";

unsigned computing_threads(const world_options& options) {
  return options.threads > 0 ? options.threads : std::max(1U, std::thread::hardware_concurrency());
}

// The threads of a world: CAF's and oneTBB's for each thread that computes; CAF's clock and
// printer; the thread for files.
size_t all_threads(const world_options& options) {
  return 2 * size_t{computing_threads(options)} + 3;
}

// Refuses a world for which not all threads can be made. CAF ends the process if it has made some
// of its threads and cannot make the next one.
void check_threads(size_t count) {
  std::mutex hold;
  std::vector<std::jthread> threads;
  std::lock_guard all_are_there{hold}; // ends before the threads are joined
  try {
    while (threads.size() < count)
      threads.emplace_back([&hold] { std::lock_guard wait{hold}; });
  } catch (const std::system_error& refused) {
    throw_failure(errc::resource,
                  "only {} of the {} threads that this process needs can be made: {}; {}",
                  threads.size(), count, refused.code().message(), limit_on_threads);
  }
}

/// Runs what it is given, one piece after the other. oneTBB makes a thread when it is needed, and
/// what it was given lies there for ever if it cannot make one; this one is there from the start.
class file_thread {
public:
  void put(std::function<void()> work) {
    {
      std::lock_guard guard{mutex_};
      waiting_.push_back(std::move(work));
    }
    called_.notify_one();
  }

private:
  void run(const std::stop_token& stop) {
    tbb::task_arena alone{1}; // what runs here takes no thread from those that compute
    std::unique_lock lock{mutex_};
    while (called_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
      auto work = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      alone.execute(work);
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any called_;
  std::deque<std::function<void()>> waiting_;
  std::jthread thread_{[this](const std::stop_token& stop) { run(stop); }}; // last: uses the others
};

/// Work that was submitted and is not done.
struct piece_of_work {
  std::function<void()> work;
  uint64_t actor = 0;      ///< For which it is; 0 = none in particular.
  bool has_to_end = false; ///< Work with files, which the world waits for.
  bool uses_world = false; ///< It runs, and not in the code of a user: it goes on, or ends, soon.
};

class threads_world;

thread_local uint64_t submitting_actor = 0;
thread_local threads_world* working_in = nullptr;
thread_local piece_of_work* working_at = nullptr;

class threads_world final : public world::implementation {
public:
  explicit threads_world(const world_options& options)
    : began_(clock::now()), computing_threads_(computing_threads(options)),
      // oneTBB counts the caller among its threads; ours never computes.
      parallelism_(tbb::global_control::max_allowed_parallelism, computing_threads_ + 1),
      // No slot is reserved for a caller: only its own threads compute in this arena.
      arena_(static_cast<int>(computing_threads_), 0),
      config_(computing_threads_, options.observed ? &observatory : nullptr), system_(config_) {
    seed = options.seed;
    try {
      arena_.enqueue([] {}); // has oneTBB make its threads: a job does not begin without them
    } catch (const std::exception&) {
      refuse_to_compute();
    }
  }

  ~threads_world() override = default;

  threads_world(const threads_world&) = delete;
  threads_world& operator=(const threads_world&) = delete;

  caf::actor_system& system() override { return system_; }

  [[nodiscard]] job_time now() const override { return clock::now() - began_.load(); }

  void set_clock(job_time time) override { began_ = began_.load() - (time - now()); }

  // oneTBB makes its threads when the first piece comes, and does not try again if that fails: what
  // it is given then never runs, or only when this world is gone. So later pieces are refused, too,
  // and the refused one is run by whichever of a thread and this function marks it first, or never.
  void submit(std::function<void()> work) override {
    if (lacks_threads_) refuse_to_compute();
    auto place = add({.work = std::move(work), .actor = submitting_for::current()});
    auto is_taken = std::make_shared<std::atomic<bool>>(false);
    try {
      arena_.enqueue([this, place, is_taken] {
        if (!is_taken->exchange(true)) run(place);
      });
    } catch (const std::exception&) {
      if (is_taken->exchange(true)) return;
      remove(place);
      lacks_threads_ = true;
      refuse_to_compute();
    }
  }

  void submit_io(std::function<void()> work) override {
    auto place = add({.work = std::move(work), .has_to_end = true});
    files_.put([this, place] { run(place); });
  }

  void call(std::function<void()> action) override { action(); }

  void send_last(const caf::actor& receiver, caf::message message) override {
    caf::anon_send(receiver, std::move(message));
  }

  expected<void> run_until(std::future<void>& done, job_time timeout) override {
    if (timeout == world::for_ever)
      done.wait();
    else if (done.wait_for(timeout) != std::future_status::ready)
      return fail(errc::deadline_exceeded, "it is not done in time");
    return {};
  }

  /// Waits for what is under way, and not for ever.
  /// @returns Whether all of it is done; else this world must not be destroyed.
  [[nodiscard]] bool end() {
    std::unique_lock lock{mutex_};
    auto is_done = [this] { return under_way_.empty(); };
    if (done_.wait_for(lock, endless_work_timeout, is_done)) return true;
    is_abandoned_ = true;
    done_.wait(lock,
               [this] { return std::ranges::none_of(under_way_, &piece_of_work::has_to_end); });
    done_.wait_for(lock, endless_work_timeout,
                   [this] { return std::ranges::none_of(under_way_, &piece_of_work::uses_world); });
    for (const auto& piece : under_way_)
      std::fprintf(stderr,
                   "%s still computes: its function does not return and cannot be stopped; its "
                   "world ends without it\n",
                   piece.actor == 0 ? "a computing thread"
                                    : observatory.name_of(piece.actor).c_str());
    return under_way_.empty();
  }

  void on_call(piece_of_work& piece) {
    std::lock_guard guard{mutex_};
    piece.uses_world = false;
    done_.notify_all();
  }

  void on_return(piece_of_work& piece) {
    std::unique_lock lock{mutex_};
    use_world(piece, lock);
  }

private:
  using clock = std::chrono::steady_clock;
  using place_of_work = std::list<piece_of_work>::iterator;

  [[noreturn]] static void refuse_to_compute() {
    throw_failure(errc::resource, "no thread can be made to compute with; {}", limit_on_threads);
  }

  // An arena does not wait for what it was given, and that refers to this world.
  place_of_work add(piece_of_work piece) {
    std::lock_guard guard{mutex_};
    return under_way_.insert(under_way_.end(), std::move(piece));
  }

  void remove(place_of_work place) {
    std::lock_guard guard{mutex_};
    under_way_.erase(place);
    done_.notify_all();
  }

  void run(place_of_work place) {
    perform(*place);
    remove(place);
  }

  // Returns only if the world is there; else nothing of the caller's may be there any more.
  void use_world(piece_of_work& piece, std::unique_lock<std::mutex>& lock) {
    if (is_abandoned_ && !piece.has_to_end) done_.wait(lock, [] { return false; });
    piece.uses_world = true;
  }

  void perform(piece_of_work& piece) {
    std::function<void()> work;
    {
      std::unique_lock lock{mutex_};
      use_world(piece, lock);
      work = std::move(piece.work);
    }
    working_in = this;
    working_at = &piece;
    work();
    working_in = nullptr;
    working_at = nullptr;
    work = {};
    leave_unlogged(); // work that made an actor turned it on, and the system waits for its log
  }

  std::atomic<clock::time_point> began_; ///< First: actors ask for the time as long as they live.
  unsigned computing_threads_;
  tbb::global_control parallelism_;
  tbb::task_arena arena_;
  std::atomic<bool> lacks_threads_ = false;
  std::mutex mutex_;
  std::condition_variable done_;
  std::list<piece_of_work> under_way_; ///< Computing, and work with files.
  bool is_abandoned_ = false;          ///< The world has ended without what is under way.
  file_thread files_;                  ///< A single thread, so that writes keep their order.
  // Last: an actor may still be in `submit` when its work is done, so the threads go after it.
  threads_config config_;
  caf::actor_system system_;
};

} // namespace

submitting_for::submitting_for(uint64_t actor) {
  submitting_actor = actor;
}

submitting_for::~submitting_for() {
  submitting_actor = 0;
}

uint64_t submitting_for::current() {
  return submitting_actor;
}

void enter_user_code() {
  if (working_in != nullptr) working_in->on_call(*working_at);
}

void leave_user_code() {
  if (working_in != nullptr) working_in->on_return(*working_at);
}

void end_world(std::unique_ptr<world::implementation>& ending) {
  auto* threads = dynamic_cast<threads_world*>(ending.get());
  if (threads == nullptr || threads->end()) return;
  // Its threads refer to it until the process ends.
  static auto* abandoned = new std::list<std::unique_ptr<world::implementation>>;
  static std::mutex mutex;
  std::lock_guard guard{mutex};
  abandoned->push_back(std::move(ending));
}

std::unique_ptr<world::implementation> make_threads_world(const world_options& options) {
  check_threads(all_threads(options));
  return std::make_unique<threads_world>(options);
}

} // namespace troupe
