// SPDX-License-Identifier: Apache-2.0
// Plans of collectives, carried out in virtual time.
#include "simulation/collective_clock.hpp"

#include "actors/collective/collective_agreement.hpp"
#include "kernels/tensor/dtype.hpp"
#include "messages/errors/assert.hpp"
#include "simulation/network/end_of_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <utility>

namespace troupe {

namespace {

constexpr auto all_strands = std::numeric_limits<uint32_t>::max();

constexpr std::array<std::pair<std::string_view, collective_algorithm>, 6> algorithm_names{
  {{"ring", collective_algorithm::ring},
   {"halving_doubling", collective_algorithm::halving_doubling},
   {"all_to_all", collective_algorithm::all_to_all},
   {"direct", collective_algorithm::direct},
   {"chain", collective_algorithm::chain},
   {"tree", collective_algorithm::tree}}};

constexpr uint64_t number_bytes = sizeof(float);

// An array without elements would be no reason to wait for each other.
collective_meaning meaning_of(collective_algorithm algorithm, uint64_t bytes) {
  auto elements = std::max<uint64_t>(1, bytes / number_bytes);
  return {.kind = collective_kind::all_reduce,
          .algorithm = algorithm,
          .dtype = static_cast<uint8_t>(dtype::f32),
          .contributions = 1,
          .extents = {static_cast<int64_t>(elements)}};
}

} // namespace

expected<collective_algorithm> parse_collective_algorithm(std::string_view name) {
  std::vector<std::string_view> known;
  for (const auto& [known_name, algorithm] : algorithm_names) {
    if (known_name == name) return algorithm;
    known.push_back(known_name);
  }
  return fail(errc::invalid_argument,
              fmt::format("no collective '{}'; there are {}", name, fmt::join(known, ", ")));
}

double plan_steps_of(collective_algorithm algorithm, uint32_t ranks, uint64_t bytes) {
  auto cuts = algorithm == collective_algorithm::ring
              || algorithm == collective_algorithm::halving_doubling
              || algorithm == collective_algorithm::all_to_all;
  auto slice = static_cast<double>(bytes) / (cuts ? ranks : 1);
  return 4.0 * ranks * ranks
         * std::max(1.0, std::ceil(slice / static_cast<double>(segment_bytes(algorithm, ranks))));
}

collective_clock::collective_clock(collective_algorithm algorithm, uint32_t ranks,
                                   const network_options& network)
  : network_(network), ranks_(ranks), last_arrival_(size_t{ranks} * ranks, job_time{0}),
    ends_(ranks, job_time{0}) {
  TROUPE_ASSERT(ranks > 0);
  auto meaning = meaning_of(algorithm, network.gradient_bytes);
  for (uint32_t rank = 0; rank < ranks; ++rank)
    plans_.push_back(ranks == 1 ? collective_plan{} : plan_of(meaning, {rank, ranks}));
}

const std::vector<job_time>& collective_clock::next(std::span<const job_time> begun) {
  TROUPE_ASSERT(begun.size() == ranks_.size(), begun.size());
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    auto& state = ranks_[rank];
    state.strands.assign(plans_[rank].strands.size(), {});
    state.begun = state.done = 0;
    push({begun[rank], 0, rank, all_strands, 0, job_time{0}});
  }
  while (!events_.empty()) {
    auto first = events_.front();
    std::pop_heap(events_.begin(), events_.end());
    events_.pop_back();
    happen(first);
  }
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank)
    TROUPE_ASSERT(ranks_[rank].done == plans_[rank].strands.size(), rank, ranks_[rank].done);
  return ends_;
}

void collective_clock::happen(const event& next) {
  auto& state = ranks_[next.rank];
  if (next.strand == all_strands) {
    ends_[next.rank] = next.due;
    return begin_strands(next.rank, next.due);
  }
  if (next.card_time > job_time{0}) {
    state.receives_until = std::max(next.due, later(state.receives_until, next.card_time));
    if (state.receives_until > next.due)
      return push({state.receives_until, 0, next.rank, next.strand, next.from, job_time{0}});
  }
  state.strands[next.strand].arrived.push_back(next.from);
  if (next.strand < state.begun && go_on(next.rank, next.strand, next.due))
    begin_strands(next.rank, next.due);
}

// As many are under way as the plan says; one that waits for no message is done at once.
void collective_clock::begin_strands(uint32_t rank, job_time now) {
  auto& state = ranks_[rank];
  while (state.begun < state.strands.size()
         && state.begun - state.done < plans_[rank].strands_at_once)
    static_cast<void>(go_on(rank, static_cast<uint32_t>(state.begun++), now));
}

// @returns Whether this has ended the strand.
bool collective_clock::go_on(uint32_t rank, uint32_t strand, job_time now) {
  const auto& steps = plans_[rank].strands[strand];
  auto& state = ranks_[rank].strands[strand];
  if (state.next > steps.size()) return false;
  for (; state.next < steps.size(); ++state.next) {
    const auto& step = steps[state.next];
    if (is_receiving(step.action)) {
      auto came = std::ranges::find(state.arrived, step.peer);
      if (came == state.arrived.end()) return false;
      state.arrived.erase(came);
    } else if (step.action != step_action::sum_kept) {
      send(rank, strand, step, now);
    }
  }
  ++state.next; // it is done once
  ++ranks_[rank].done;
  ends_[rank] = now;
  return true;
}

void collective_clock::send(uint32_t rank, uint32_t strand, const plan_step& step, job_time now) {
  job_time card_time{0};
  if (network_.bytes_per_second > 0)
    card_time = job_time{std::llround(std::min(
      1e9 * static_cast<double>(step.range.count() * number_bytes) / network_.bytes_per_second,
      static_cast<double>(time_max.count())))};
  if (step.peer != everybody) return send_to(step.peer, rank, strand, card_time, now);
  auto size = static_cast<uint32_t>(ranks_.size());
  for (uint32_t distance = 1; distance < size; ++distance)
    send_to((rank + distance) % size, rank, strand, card_time, now);
}

void collective_clock::send_to(uint32_t peer, uint32_t rank, uint32_t strand, job_time card_time,
                               job_time now) {
  auto& sends_until = ranks_[rank].sends_until;
  auto begun = std::max(now, sends_until);
  sends_until = later(begun, card_time);
  auto passed = sends_until;
  auto latency = std::max(latency_of(rank), latency_of(peer));
  if (is_slowed(rank, peer)) {
    auto& until = slowed_until_[rank == network_.slowed->one ? 0 : 1];
    until = later(std::max(begun, until), scaled(card_time, network_.slowed->factor));
    passed = until;
    latency = scaled(latency, network_.slowed->factor);
  }
  auto& last = last_arrival_[size_t{rank} * ranks_.size() + peer];
  last = std::max(last, later(passed, latency));
  push({last, 0, peer, strand, rank, card_time});
}

bool collective_clock::is_slowed(uint32_t rank, uint32_t peer) const {
  const auto& link = network_.slowed;
  return link
         && ((rank == link->one && peer == link->other)
             || (rank == link->other && peer == link->one));
}

job_time collective_clock::latency_of(uint32_t rank) {
  if (!network_.latency) return job_time{0};
  return network_.latency(
    {.end = rank, .kind = "CollectivePart", .count = ranks_[rank].messages++});
}

void collective_clock::push(event next) {
  next.number = events_count_++;
  events_.push_back(next);
  std::push_heap(events_.begin(), events_.end());
}

} // namespace troupe
