// SPDX-License-Identifier: Apache-2.0
// How long the processes of a group take to combine an array, by the plans that real ones follow.
#pragma once

#include "actors/collective/collective_plan.hpp"
#include "messages/collective_message.hpp"
#include "simulation/network/network_options.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace troupe {

/// The algorithm of that name: "ring". Errors: invalid_argument, naming those there are.
[[nodiscard]] expected<collective_algorithm> parse_collective_algorithm(std::string_view name);

/// About how many steps the plans of all ranks have, at most.
[[nodiscard]] double plan_steps_of(collective_algorithm algorithm, uint32_t ranks, uint64_t bytes);

/// Carries out the plans of all ranks of an all_reduce, message by message and without actors.
/// Adding up takes no time. A message occupies the card of its sender for as long as its bytes
/// take, first come first served, then is on its way for the latency of the slower of both links;
/// the card of its receiver takes it in meanwhile, or when it has taken in what came before.
/// A slow link passes its messages on one after the other, at a speed of its own. Messages between
/// two ranks keep their order.
///
/// Cost: a heap operation or two for each message.
class collective_clock {
public:
  /// @param ranks At least 1. @param network `latency` is asked for both ends of a message;
  /// `gradient_bytes` are summed up, as 4-byte numbers.
  collective_clock(collective_algorithm algorithm, uint32_t ranks, const network_options& network);

  /// All ranks make the next call. @param begun When each of them begins it.
  /// @returns When each of them has the result; valid until the next call.
  [[nodiscard]] const std::vector<job_time>& next(std::span<const job_time> begun);

private:
  /// A rank begins the call, or a message for one of its strands arrives.
  struct event {
    job_time due;
    uint64_t number; ///< Orders equal times.
    uint32_t rank;
    uint32_t strand; ///< `all_strands`: the rank begins.
    uint32_t from;
    job_time card_time; ///< For which the message has to pass the card of its receiver; 0: it has.

    bool operator<(const event& other) const { // the least is on top of the heap
      return due != other.due ? due > other.due : number > other.number;
    }
  };

  struct strand_state {
    size_t next = 0;               ///< Its first step that is not done.
    std::vector<uint32_t> arrived; ///< Senders of messages that no step has taken yet.
  };

  struct rank_state {
    std::vector<strand_state> strands;
    size_t begun = 0; ///< Strands; none before the rank makes the call.
    size_t done = 0;
    job_time sends_until{0};    ///< Its card is busy with what it sends.
    job_time receives_until{0}; ///< Its card is busy with what it receives.
    uint64_t messages = 0;      ///< That passed its link.
  };

  void happen(const event& next);
  void begin_strands(uint32_t rank, job_time now);
  [[nodiscard]] bool go_on(uint32_t rank, uint32_t strand, job_time now);
  void send(uint32_t rank, uint32_t strand, const plan_step& step, job_time now);
  void send_to(uint32_t peer, uint32_t rank, uint32_t strand, job_time card_time, job_time now);
  [[nodiscard]] job_time latency_of(uint32_t rank);
  [[nodiscard]] bool is_slowed(uint32_t rank, uint32_t peer) const;
  void push(event next);

  std::vector<collective_plan> plans_; ///< By rank.
  network_options network_;
  std::vector<rank_state> ranks_;
  std::vector<event> events_;          ///< A heap.
  std::vector<job_time> last_arrival_; ///< [from * ranks + to]
  /// When the slow link has passed on what it was given, by direction: from its first end, and to
  /// it.
  std::array<job_time, 2> slowed_until_{};
  std::vector<job_time> ends_; ///< By rank.
  uint64_t events_count_ = 0;
};

} // namespace troupe
