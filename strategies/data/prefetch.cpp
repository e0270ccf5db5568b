// SPDX-License-Identifier: Apache-2.0
// Reads elements in the executor's task, or in the caller's.
#include "strategies/data/prefetch.hpp"

#include "strategies/data/called.hpp"

#include <utility>

namespace troupe {

prefetcher::prefetcher(element_reader read, uint64_t size, uint64_t ahead_max, executor elsewhere)
  : read_(std::move(read)), size_(size), ahead_max_(ahead_max), elsewhere_(std::move(elsewhere)) {}

expected<element> prefetcher::at(uint64_t epoch, uint64_t index) {
  const place here{epoch, index};
  std::unique_lock lock{mutex_};
  // A read that goes on now has begun, so this wait ends with that element.
  if (here != next_ || ready_.empty()) read_done_.wait(lock, [this] { return !is_reading_; });
  if (here != next_) {
    ready_.clear();
    next_ = here;
  }
  auto result = ready_.empty() ? read(lock, here) : std::move(ready_.front());
  if (!ready_.empty()) ready_.pop_front();
  ++next_.index;
  if (has_work() && !std::exchange(is_asked_, true)) ask_for_more(lock);
  return result;
}

expected<element> prefetcher::read(std::unique_lock<std::mutex>& lock, place where) {
  is_reading_ = true;
  lock.unlock();
  auto result = called(reader_name, [&] { return read_(where.epoch, where.index); });
  lock.lock();
  is_reading_ = false;
  read_done_.notify_all();
  return result;
}

bool prefetcher::has_work() const {
  return ready_.size() < ahead_max_ && next_.index + ready_.size() < size_;
}

// The task holds no share in us: when the iterator goes, what is still to come does nothing. An
// executor may run it at once; then it leaves the next one to this loop, or tasks would nest. One
// that throws is as one that is busy, and is asked again with the next element.
void prefetcher::ask_for_more(std::unique_lock<std::mutex>& lock) {
  asks_again_ = true;
  if (std::exchange(is_asking_, true)) return;
  while (std::exchange(asks_again_, false)) {
    lock.unlock();
    auto is_accepted = submit_task();
    lock.lock();
    if (!is_accepted) is_asked_ = false;
  }
  is_asking_ = false;
}

bool prefetcher::submit_task() {
  try {
    elsewhere_([self = weak_from_this()] {
      if (auto alive = self.lock()) alive->read_one_ahead();
    });
    return true;
  } catch (...) {
    return false;
  }
}

void prefetcher::read_one_ahead() {
  std::unique_lock lock{mutex_};
  if (has_work() && !is_reading_) {
    auto result = read(lock, {next_.epoch, next_.index + ready_.size()});
    ready_.push_back(std::move(result));
  }
  // A caller that reads for itself asks again when it is done.
  is_asked_ = has_work() && !is_reading_;
  if (is_asked_) ask_for_more(lock);
}

} // namespace troupe
