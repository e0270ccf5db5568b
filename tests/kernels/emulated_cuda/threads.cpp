// SPDX-License-Identifier: Apache-2.0
// The threads of a block as fibers that take turns.
#undef _FORTIFY_SOURCE // it takes a jump to another stack for an attack
#include "messages/errors/assert.hpp"
#include "tests/kernels/emulated_cuda/emulator.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mma.h>
#include <numeric>
#include <sanitizer/tsan_interface.h>
#include <setjmp.h>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace troupe::emulated {

namespace {

constexpr size_t stack_bytes = size_t{256} << 10;
constexpr unsigned lanes_max = 32;

uint64_t order_state = 1;

/// A random number below `end`, of 32 bits, which a processor divides much faster than 64.
uint32_t random_below(size_t end) {
  order_state ^= order_state << 13;
  order_state ^= order_state >> 7;
  order_state ^= order_state << 17;
  return static_cast<uint32_t>(order_state >> 32) % static_cast<uint32_t>(end);
}

// To ThreadSanitizer, each thread of a block is a thread of its own, and only barriers put in order
// what two of them do: it reports what a GPU may do the other way round. This file is compiled
// without it: here, fibers take turns.
#if defined(TROUPE_FIND_RACES)
constexpr bool finds_races = true;
#else
constexpr bool finds_races = false;
#endif

/// Where the sanitizer sees that all that comes after `pass` comes after what was done before each
/// `arrive`.
struct meeting {
  char place = 0;

  void arrive() {
    if constexpr (finds_races) __tsan_release(&place);
  }

  void pass() {
    if constexpr (finds_races) __tsan_acquire(&place);
  }
};

/// Meetings of one barrier. A thread may come to the next one before others have passed the last.
struct meetings {
  std::array<meeting, 2> in_turn;
  size_t done = 0;

  [[nodiscard]] meeting& next() { return in_turn[done % in_turn.size()]; }
};

enum class waits_for : uint8_t { nothing, block, warp };

/// A stack on which one thread after the other runs; one that waits keeps it.
struct fiber {
  std::unique_ptr<std::byte[]> stack = std::make_unique<std::byte[]>(stack_bytes);
  ucontext_t first_start{};
  jmp_buf place{};
  bool has_started = false;
  unsigned thread = 0;
  waits_for waiting = waits_for::nothing;
};

/// Lanes that meet to exchange values.
struct warp {
  unsigned lanes = 0;
  unsigned arrived = 0;
  unsigned left = 0;
  meetings barriers;
  std::array<uint64_t, lanes_max> given{};
};

/// One block while it runs.
struct block {
  const std::function<void()>* body = nullptr;
  unsigned threads = 0;
  std::vector<unsigned> order; ///< In which the threads begin.
  size_t begun = 0;
  std::vector<fiber*> on;    ///< By thread: where it was begun.
  size_t fibers = 0;         ///< That it has taken.
  std::vector<fiber*> ready; ///< That have waited, and may go on.
  unsigned finished = 0;
  unsigned at_barrier = 0;
  meeting beginning;
  meetings barriers;
  meeting end;
  std::vector<warp> warps;
  fiber* running = nullptr;
};

block now;
std::vector<std::unique_ptr<fiber>> fibers;
std::vector<std::pair<void*, size_t>> shared_arrays;
jmp_buf scheduler;
void* sanitized_scheduler = nullptr;

/// From now on this thread of the block runs; ThreadSanitizer is told.
void be_thread(unsigned thread) {
  if constexpr (finds_races) {
    static std::vector<void*> sanitized;
    while (sanitized.size() <= thread)
      sanitized.push_back(__tsan_create_fiber(0));
    __tsan_switch_to_fiber(sanitized[thread], __tsan_switch_to_fiber_no_sync);
  }
}

/// From now on none of the block's threads runs; ThreadSanitizer is told.
void be_scheduler() {
  if constexpr (finds_races)
    __tsan_switch_to_fiber(sanitized_scheduler, __tsan_switch_to_fiber_no_sync);
}

void begin_next_thread(fiber& on) {
  on.thread = now.order[now.begun++];
  now.on[on.thread] = &on;
  threadIdx.x = on.thread;
}

void leave() {
  if (_setjmp(now.running->place) != 0) return;
  be_scheduler();
  _longjmp(scheduler, 1);
}

/// Runs threads until one waits (then others go on elsewhere), and later the rest. On one stack,
/// the sanitizer would see races of one thread with the next.
void run_threads() {
  fiber& self = *now.running;
  for (;;) {
    be_thread(self.thread);
    now.beginning.pass();
    (*now.body)();
    now.end.arrive();
    be_scheduler();
    ++now.finished;
    if (finds_races || now.begun == now.threads) break;
    begin_next_thread(self);
  }
  self.has_started = false;
  _longjmp(scheduler, 1);
}

void resume(fiber& on) {
  now.running = &on;
  threadIdx.x = on.thread;
  if (_setjmp(scheduler) != 0) return;
  if (on.has_started) {
    be_thread(on.thread);
    _longjmp(on.place, 1);
  }
  on.has_started = true;
  getcontext(&on.first_start);
  on.first_start.uc_stack.ss_sp = on.stack.get();
  on.first_start.uc_stack.ss_size = stack_bytes;
  makecontext(&on.first_start, run_threads, 0);
  setcontext(&on.first_start);
}

fiber& next_fiber() {
  if (now.fibers == fibers.size()) fibers.push_back(std::make_unique<fiber>());
  return *fibers[now.fibers++];
}

void wait(waits_for what) {
  now.running->waiting = what;
  leave();
}

void release(waits_for what, unsigned first, unsigned last) {
  for (auto thread = first; thread < std::min(last, now.threads); ++thread)
    if (auto& one = *now.on[thread]; one.thread == thread && one.waiting == what) {
      one.waiting = waits_for::nothing;
      now.ready.push_back(&one);
    }
}

fiber* take_ready() {
  if (now.ready.empty()) return nullptr;
  std::swap(now.ready[random_below(now.ready.size())], now.ready.back());
  auto* next = now.ready.back();
  now.ready.pop_back();
  return next;
}

void run_block(const std::function<void()>& body, unsigned threads) {
  now = {.body = &body,
         .threads = threads,
         .order = std::vector<unsigned>(threads),
         .on = std::vector<fiber*>(threads)};
  std::iota(now.order.begin(), now.order.end(), 0U);
  for (unsigned i = threads; i > 1; --i)
    std::swap(now.order[i - 1], now.order[random_below(i)]);
  now.warps.resize((threads + lanes_max - 1) / lanes_max);
  for (unsigned thread = 0; thread < threads; ++thread)
    ++now.warps[thread / lanes_max].lanes;
  if constexpr (finds_races) sanitized_scheduler = __tsan_get_current_fiber();
  now.beginning.arrive();
  while (now.finished < threads) {
    if (now.begun < threads) {
      auto& fresh = next_fiber();
      begin_next_thread(fresh);
      resume(fresh);
      continue;
    }
    auto* next = take_ready();
    // Some threads of the block wait, and the others are gone: on a GPU they might wait for ever.
    TROUPE_ASSERT(next != nullptr, now.finished, now.at_barrier, blockIdx.x);
    resume(*next);
  }
  now.end.pass();
}

} // namespace

void set_thread_order(uint64_t seed) {
  order_state = seed * 0x9e3779b97f4a7c15 + 1;
}

shared_array::shared_array(void* first, size_t bytes) {
  shared_arrays.emplace_back(first, bytes);
  std::memset(first, 0xff, bytes);
}

void block_barrier() {
  auto& meeting = now.barriers.next();
  meeting.arrive();
  if (++now.at_barrier < now.threads) {
    wait(waits_for::block);
  } else {
    now.at_barrier = 0;
    ++now.barriers.done;
    release(waits_for::block, 0, now.threads);
  }
  meeting.pass();
}

void warp_barrier() {
  auto thread = now.running->thread;
  auto& mine = now.warps[thread / lanes_max];
  auto& meeting = mine.barriers.next();
  meeting.arrive();
  if (mine.arrived + 1 == mine.lanes) ++mine.barriers.done;
  exchange(0, thread % lanes_max);
  meeting.pass();
}

uint64_t exchange(uint64_t value, unsigned source) {
  auto thread = now.running->thread;
  auto& mine = now.warps[thread / lanes_max];
  auto meet = [&](unsigned& count) {
    if (++count < mine.lanes) return wait(waits_for::warp);
    count = 0;
    release(waits_for::warp, thread / lanes_max * lanes_max, (thread / lanes_max + 1) * lanes_max);
  };
  mine.given[thread % lanes_max] = value;
  meet(mine.arrived);
  TROUPE_ASSERT(source < mine.lanes, source, mine.lanes);
  auto result = mine.given[source];
  meet(mine.left);
  return result;
}

void meet_at_matrix(const void* first, size_t row_bytes) {
  TROUPE_ASSERT(reinterpret_cast<uintptr_t>(first) % 32 == 0);
  TROUPE_ASSERT(row_bytes % 16 == 0, row_bytes);
  exchange(0, 0);
}

void run_grid(unsigned blocks, unsigned threads, const std::function<void()>& body) {
  gridDim = dim3(blocks);
  blockDim = dim3(threads);
  for (unsigned index = 0; index < blocks; ++index) {
    blockIdx.x = index;
    for (auto [first, bytes] : shared_arrays)
      std::memset(first, 0xff, bytes);
    run_block(body, threads);
  }
}

} // namespace troupe::emulated
