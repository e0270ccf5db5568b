// SPDX-License-Identifier: Apache-2.0
// Reads elements ahead, before an iterator asks for them.
#pragma once

#include "strategies/data/dataset.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

namespace troupe {

/// While a gradient is computed, the next batch could be read. A prefetcher does so on an executor,
/// one element at a time: reading is then as sequential as without it, so the elements are the
/// same. If the executor is busy, the caller reads for itself; so no caller ever waits for a task
/// that has not begun, even where all threads of the executor ask.
///
/// Thread: `at` by one owner at a time; the executor's threads beside it.
class prefetcher : public std::enable_shared_from_this<prefetcher> {
public:
  /// @param size Elements of one pass. @param ahead_max Elements that may wait.
  prefetcher(element_reader read, uint64_t size, uint64_t ahead_max, executor elsewhere);

  /// The element; from memory if it is the one that follows the last.
  [[nodiscard]] expected<element> at(uint64_t epoch, uint64_t index);

private:
  /// Where an element lies: pass and number.
  struct place {
    uint64_t epoch = 0;
    uint64_t index = 0;
    bool operator==(const place&) const = default;
  };

  expected<element> read(std::unique_lock<std::mutex>& lock, place where);
  [[nodiscard]] bool has_work() const;
  void ask_for_more(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool submit_task();
  void read_one_ahead();

  const element_reader read_;
  const uint64_t size_;
  const uint64_t ahead_max_;
  const executor elsewhere_;

  std::mutex mutex_;
  std::condition_variable read_done_;
  place next_;                          ///< The place of the first element in `ready_`.
  std::deque<expected<element>> ready_; ///< Read, and not yet asked for.
  bool is_reading_ = false;             ///< A thread is inside `read_`.
  bool is_asked_ = false;               ///< A task of ours waits for its turn, or runs.
  bool is_asking_ = false;              ///< A thread is inside `elsewhere_`.
  bool asks_again_ = false;             ///< It has to go there again.
};

} // namespace troupe
