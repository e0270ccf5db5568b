// SPDX-License-Identifier: Apache-2.0
// The queue's threads: they search for jobs, look on for a while, sleep, and are called.
#include "actors/world/job_queue.hpp"

#include <chrono>
#include <thread>

namespace troupe {

namespace {

using std::chrono::steady_clock;

constexpr int looks_between_offers = 32;

// Leaves the processor's resources to its other thread for a moment.
void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

} // namespace

void job_queue::put(caf::resumable* job) {
  bool is_called;
  {
    std::lock_guard guard{mutex_};
    jobs_.push_back(job);
    count_ = jobs_.size();
    is_called = call_a_thread();
  }
  if (is_called) called_.notify_one();
}

caf::resumable* job_queue::take() {
  std::unique_lock lock{mutex_};
  auto searches = false;
  while (jobs_.empty()) {
    if (!searches) ++searching_;
    searches = true;
    if (!is_looking_ && spin_.begins(steady_clock::now())) {
      is_looking_ = true;
      lock.unlock();
      look();
      lock.lock();
      is_looking_ = false;
      if (!jobs_.empty()) break;
    }
    --searching_;
    ++sleeping_;
    auto began = steady_clock::now();
    called_.wait(lock, [this] { return calls_ > 0; });
    if (!is_looking_) spin_.has_slept(steady_clock::now() - began);
    --calls_;
    --sleeping_; // the call has counted it among those that search
  }
  if (searches) --searching_;
  auto* job = take_first();
  auto is_called = call_a_thread();
  lock.unlock();
  if (is_called) called_.notify_one();
  return job;
}

caf::resumable* job_queue::try_take() {
  std::lock_guard guard{mutex_};
  return jobs_.empty() ? nullptr : take_first();
}

caf::resumable* job_queue::take_first() {
  auto* job = jobs_.front();
  jobs_.pop_front();
  count_ = jobs_.size();
  return job;
}

// Calls a sleeping thread if there is a job that no thread searches for. A thread that has offered
// its processor may be away for long.
bool job_queue::call_a_thread() {
  size_t expected = is_looking_ && is_away_ ? 1 : 0;
  if (jobs_.empty() || searching_ > expected || sleeping_ == calls_) return false;
  ++calls_;
  ++searching_;
  return true;
}

void job_queue::look() {
  do {
    for (int i = 0; i < looks_between_offers; ++i) {
      if (count_ > 0) return spin_.has_found();
      pause_briefly();
    }
    is_away_ = true;
    if (count_ == 0) std::this_thread::yield(); // else it came before this thread was seen away
    is_away_ = false;
  } while (spin_.goes_on(steady_clock::now()));
}

} // namespace troupe
