// SPDX-License-Identifier: Apache-2.0
// The algorithms, each as a list of steps.
#include "actors/collective/collective_plan.hpp"

#include "messages/assert.hpp"

#include <algorithm>

namespace troupe {

namespace {

using enum step_action;

// How many lanes there are if the longest range that one works on is cut into segments.
uint64_t lane_count(uint64_t elements, plan_grain grain) {
  return std::max<uint64_t>(1, (elements + grain.segment_elements - 1) / grain.segment_elements);
}

// The part of a range that a lane works on.
element_range segment_of(element_range all, uint64_t lane, uint64_t lanes, plan_grain grain) {
  auto cut = [&](uint64_t i) {
    if (i == lanes) return all.end;
    return all.begin + all.count() / lanes * i / grain.aligned_elements * grain.aligned_elements;
  };
  return {cut(lane), cut(lane + 1)};
}

// Ranks from the one after ours on, so that not all send to the same at the same time.
template <class Body>
void for_others(group_place place, const Body& body) {
  for (uint32_t distance = 1; distance < place.size; ++distance)
    body(static_cast<uint32_t>((uint64_t{place.rank} + distance) % place.size));
}

} // namespace

std::vector<uint64_t> even_cuts(uint64_t elements, uint32_t parts, uint64_t aligned) {
  TROUPE_ASSERT(parts > 0);
  std::vector<uint64_t> cuts;
  for (uint32_t i = 0; i < parts; ++i)
    cuts.push_back((elements / parts * i + elements % parts * i / parts) / aligned * aligned);
  cuts.push_back(elements);
  return cuts;
}

element_range rows_of(group_place place, uint64_t rows) {
  auto begin
    = [&](uint64_t rank) { return rows / place.size * rank + std::min(rank, rows % place.size); };
  return {begin(place.rank), begin(uint64_t{place.rank} + 1)};
}

collective_plan plan_direct(group_place place, uint64_t elements, plan_grain grain) {
  collective_plan plan;
  auto lanes = lane_count(elements, grain);
  for (uint64_t i = 0; i < lanes; ++i) {
    auto range = segment_of({0, elements}, i, lanes, grain);
    auto& lane = plan.lanes.emplace_back();
    if (place.size > 1) lane.push_back({send_own, everybody, range});
    for_others(place, [&](uint32_t peer) { lane.push_back({keep_own, peer, range}); });
    lane.push_back({sum_kept, everybody, range});
  }
  return plan;
}

collective_plan plan_all_to_all(group_place place, const std::vector<uint64_t>& cuts,
                                plan_grain grain, bool spreads) {
  TROUPE_ASSERT(cuts.size() == uint64_t{place.size} + 1, cuts.size(), place.size);
  uint64_t longest = 0;
  for (uint32_t rank = 0; rank < place.size; ++rank)
    longest = std::max(longest, cuts[rank + 1] - cuts[rank]);
  auto lanes = lane_count(longest, grain);
  collective_plan plan;
  for (uint64_t i = 0; i < lanes; ++i) {
    auto slice_of = [&](uint32_t rank) {
      return segment_of({cuts[rank], cuts[rank + 1]}, i, lanes, grain);
    };
    auto& lane = plan.lanes.emplace_back();
    auto add_step = [&](step_action action, uint32_t peer, element_range range) {
      if (!range.is_empty()) lane.push_back({action, peer, range});
    };
    auto own = slice_of(place.rank);
    for_others(place, [&](uint32_t peer) { add_step(send_own, peer, slice_of(peer)); });
    for_others(place, [&](uint32_t peer) { add_step(keep_own, peer, own); });
    add_step(sum_kept, everybody, own);
    if (!spreads || place.size == 1) continue;
    add_step(send_result, everybody, own);
    for_others(place, [&](uint32_t peer) { add_step(copy_result, peer, slice_of(peer)); });
  }
  return plan;
}

collective_plan plan_direct_broadcast(group_place place, uint32_t root, uint64_t elements,
                                      plan_grain grain) {
  collective_plan plan;
  auto lanes = lane_count(elements, grain);
  for (uint64_t i = 0; i < lanes; ++i) {
    auto range = segment_of({0, elements}, i, lanes, grain);
    auto& lane = plan.lanes.emplace_back();
    if (place.rank != root)
      lane.push_back({copy_result, root, range});
    else if (place.size > 1)
      lane.push_back({send_result, everybody, range});
  }
  return plan;
}

} // namespace troupe
