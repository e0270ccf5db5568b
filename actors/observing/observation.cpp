// SPDX-License-Identifier: Apache-2.0
// An actor's figures and last messages, read while the actor writes them.
#include "actors/observing/observation.hpp"

#include <algorithm>

namespace troupe {

namespace {

constexpr uint64_t packed_no_step = 0xffffffff;

} // namespace

void observation::begin_anew(uint64_t actor) {
  for (auto* counter : {&received_, &begun_, &written_, &done_, &errors_, &timed_})
    counter->store(0, std::memory_order_relaxed);
  timed_total_.store(0, std::memory_order_relaxed);
  end_computing();
  role_.store(nullptr, std::memory_order_relaxed);
  name_.store(nullptr, std::memory_order_relaxed);
  actor_.store(actor, std::memory_order_relaxed);
  ended_.store(false, std::memory_order_release);
}

void observation::put_back_message() {
  auto before = done_.load(std::memory_order_relaxed);
  written_.store(before, std::memory_order_release); // the slots before it are whole
  begun_.store(before, std::memory_order_relaxed);
}

void observation::add_timed(job_time took) {
  timed_.store(timed() + 1, std::memory_order_relaxed);
  timed_total_.store((timed_total() + took).count(), std::memory_order_relaxed);
}

actor_doing observation::doing() const {
  if (ended_.load(std::memory_order_acquire)) return actor_doing::ended;
  if (computing_since()) return actor_doing::computing;
  auto done = done_.load(std::memory_order_relaxed);
  return begun_.load(std::memory_order_relaxed) > done ? actor_doing::working
                                                       : actor_doing::waiting;
}

uint64_t observation::packed(const sighting& seen) {
  constexpr uint64_t sender_end = uint64_t{1} << 24;
  auto kind = seen.kind != nullptr ? seen.kind - message_kinds().data() + 1 : 0;
  auto sender = seen.sender < sender_end ? seen.sender : 0;
  return static_cast<uint64_t>(kind) | sender << 8 | std::min(seen.step, packed_no_step) << 32;
}

std::optional<job_time> observation::computing_since() const {
  auto since = computing_since_.load(std::memory_order_relaxed);
  return since == not_computing ? std::nullopt : std::optional{job_time{since}};
}

sighting observation::unpacked(job_time when, uint64_t bits) {
  auto kind = bits & 0xff;
  auto step = bits >> 32;
  return {.when = when,
          .kind = kind > 0 ? &message_kinds()[kind - 1] : nullptr,
          .sender = bits >> 8 & 0xffffff,
          .step = step < packed_no_step ? step : no_step};
}

uint64_t observation::mailbox_depth() const {
  if (ended_.load(std::memory_order_acquire)) return 0;
  auto begun = begun_.load(std::memory_order_relaxed);
  auto received = this->received();
  return received - std::min(received, begun);
}

// A slot that the actor began to write anew while it was read is left out: its old number is then
// more than a ring behind.
size_t observation::last_messages(std::array<sighting, messages_kept>& into) const {
  auto written = written_.load(std::memory_order_acquire);
  auto first = written - std::min<uint64_t>(written, messages_kept);
  for (auto number = first; number < written; ++number)
    into[number - first] = ring_[number % messages_kept].read();
  std::atomic_thread_fence(std::memory_order_acquire);
  auto begun = begun_.load(std::memory_order_relaxed);
  if (begun < written) return 0; // it has become another actor's
  auto whole_from = begun - std::min<uint64_t>(begun, messages_kept);
  auto torn = std::min(whole_from - std::min(whole_from, first), written - first);
  std::move(into.begin() + static_cast<ptrdiff_t>(torn),
            into.begin() + static_cast<ptrdiff_t>(written - first), into.begin());
  return written - first - torn;
}

} // namespace troupe
