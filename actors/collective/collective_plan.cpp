// SPDX-License-Identifier: Apache-2.0
// The algorithms, each as a list of steps.
#include "actors/collective/collective_plan.hpp"

#include "messages/errors/assert.hpp"

#include <algorithm>
#include <bit>

namespace troupe {

namespace {

using enum step_action;

// How many strands there are if the longest range that one works on is cut into segments.
uint64_t strand_count(uint64_t elements, plan_grain grain) {
  return std::max<uint64_t>(1, (elements + grain.segment_elements - 1) / grain.segment_elements);
}

// The part of a range that a strand works on.
element_range segment_of(element_range all, uint64_t strand, uint64_t strands, plan_grain grain) {
  auto cut = [&](uint64_t i) {
    if (i == strands) return all.end;
    return all.begin + all.count() / strands * i / grain.aligned_elements * grain.aligned_elements;
  };
  return {cut(strand), cut(strand + 1)};
}

// As many strands as segments, each made by `add_steps(strand, range)`.
template <class Body>
collective_plan plan_segments(uint64_t elements, plan_grain grain, const Body& add_steps) {
  collective_plan plan;
  auto strands = strand_count(elements, grain);
  for (uint64_t i = 0; i < strands; ++i)
    add_steps(plan.strands.emplace_back(), segment_of({0, elements}, i, strands, grain));
  return plan;
}

// As many strands as segments of the longest slice, each made by `add_steps(strand, slice_of)`;
// `slice_of(rank)` is the strand's segment of a rank's slice.
template <class Body>
collective_plan plan_slices(group_place place, const std::vector<uint64_t>& cuts, plan_grain grain,
                            const Body& add_steps) {
  TROUPE_ASSERT(cuts.size() == uint64_t{place.size} + 1, cuts.size(), place.size);
  uint64_t longest = 0;
  for (uint32_t rank = 0; rank < place.size; ++rank)
    longest = std::max(longest, cuts[rank + 1] - cuts[rank]);
  auto strands = strand_count(longest, grain);
  collective_plan plan;
  for (uint64_t i = 0; i < strands; ++i)
    add_steps(plan.strands.emplace_back(), [&, i](uint32_t rank) {
      return segment_of({cuts[rank], cuts[rank + 1]}, i, strands, grain);
    });
  return plan;
}

// A range without elements needs no step.
void add_step(plan_strand& strand, step_action action, uint32_t peer, element_range range) {
  if (!range.is_empty()) strand.push_back({action, peer, range});
}

uint32_t after(group_place place, uint64_t distance = 1) {
  return static_cast<uint32_t>((place.rank + distance) % place.size);
}

uint32_t before(group_place place, uint64_t distance = 1) {
  return after(place, place.size - distance % place.size);
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
  return plan_segments(elements, grain, [&](plan_strand& strand, element_range range) {
    strand.reserve(place.size + 1);
    if (place.size > 1) strand.push_back({send_own, everybody, range});
    for_others(place, [&](uint32_t peer) { strand.push_back({keep_own, peer, range}); });
    strand.push_back({sum_kept, everybody, range});
  });
}

collective_plan plan_all_to_all(group_place place, const std::vector<uint64_t>& cuts,
                                plan_grain grain, bool spreads) {
  return plan_slices(place, cuts, grain, [&](plan_strand& strand, const auto& slice_of) {
    auto own = slice_of(place.rank);
    for_others(place, [&](uint32_t peer) { add_step(strand, send_own, peer, slice_of(peer)); });
    for_others(place, [&](uint32_t peer) { add_step(strand, keep_own, peer, own); });
    add_step(strand, sum_kept, everybody, own);
    if (!spreads || place.size == 1) return;
    add_step(strand, send_result, everybody, own);
    for_others(place, [&](uint32_t peer) { add_step(strand, copy_result, peer, slice_of(peer)); });
  });
}

collective_plan plan_chain(group_place place, uint64_t elements, plan_grain grain) {
  TROUPE_ASSERT(place.size > 1);
  auto last = place.size - 1;
  auto add_steps = [&](plan_strand& strand, element_range range) {
    if (place.rank > 0) add_step(strand, place.rank == last ? add_last : add, before(place), range);
    if (place.rank < last) add_step(strand, send_partial, after(place), range);
    if (place.rank < last) add_step(strand, copy_result, before(place), range);
    if (after(place) != last) add_step(strand, send_result, after(place), range);
  };
  auto plan = plan_segments(elements, grain, add_steps);
  plan.strands_at_once = std::max(plan.strands_at_once, size_t{2} * place.size); // one for each hop
  return plan;
}

collective_plan plan_ring(group_place place, uint64_t elements, plan_grain grain) {
  TROUPE_ASSERT(place.size > 1);
  auto cuts = even_cuts(elements, place.size, grain.aligned_elements);
  return plan_slices(place, cuts, grain, [&](plan_strand& strand, const auto& slice_of) {
    for (uint32_t round = 1; round < place.size; ++round) {
      auto is_last = round + 1 == place.size;
      add_step(strand, send_partial, after(place), slice_of(before(place, round - 1)));
      add_step(strand, is_last ? add_last : add, before(place), slice_of(before(place, round)));
    }
    for (uint32_t round = 1; round < place.size; ++round) {
      add_step(strand, send_result, after(place),
               slice_of(before(place, uint64_t{round} + place.size - 2)));
      add_step(strand, copy_result, before(place), slice_of(before(place, round - 1)));
    }
  });
}

// ---- halving and doubling ----

namespace {

// Ranks as a power of two, made by pairs of which one speaks for both.
struct folded_group {
  uint32_t size;  // a power of two
  uint32_t pairs; // ranks 2i and 2i + 1, for i below that; the odd ones speak

  explicit folded_group(uint32_t ranks) : size(std::bit_floor(ranks)), pairs(ranks - size) {}

  [[nodiscard]] bool is_spoken_for(uint32_t rank) const {
    return rank < 2 * pairs && rank % 2 == 0;
  }

  [[nodiscard]] bool speaks_for_two(uint32_t rank) const {
    return rank < 2 * pairs && rank % 2 == 1;
  }

  [[nodiscard]] uint32_t number_of(uint32_t rank) const {
    return rank < 2 * pairs ? rank / 2 : rank - pairs;
  }

  [[nodiscard]] uint32_t rank_of(uint32_t number) const {
    return number < pairs ? 2 * number + 1 : number + pairs;
  }
};

// A range that two partners divide between them.
struct halved_range {
  uint32_t partner;
  element_range kept;
  element_range given;
};

std::vector<halved_range> halve(const folded_group& group, uint32_t number, element_range range,
                                uint64_t aligned) {
  std::vector<halved_range> halves;
  for (auto distance = group.size / 2; distance > 0; distance /= 2) {
    auto middle = range.begin + range.count() / 2 / aligned * aligned;
    element_range low{range.begin, middle};
    element_range high{middle, range.end};
    auto is_low = (number & distance) == 0;
    auto partner = group.rank_of(number ^ distance);
    halves.push_back({partner, is_low ? low : high, is_low ? high : low});
    range = halves.back().kept;
  }
  return halves;
}

} // namespace

collective_plan plan_halving_doubling(group_place place, uint64_t elements, plan_grain grain) {
  TROUPE_ASSERT(place.size > 1);
  folded_group group{place.size};
  // The shortest pieces are to be as long as segments.
  grain.segment_elements *= group.size;
  return plan_segments(elements, grain, [&](plan_strand& strand, element_range range) {
    if (group.is_spoken_for(place.rank)) {
      add_step(strand, send_partial, place.rank + 1, range);
      add_step(strand, copy_result, place.rank + 1, range);
      return;
    }
    if (group.speaks_for_two(place.rank)) add_step(strand, add, place.rank - 1, range);
    auto halves = halve(group, group.number_of(place.rank), range, grain.aligned_elements);
    for (const auto& half : halves) {
      add_step(strand, send_partial, half.partner, half.given);
      add_step(strand, &half == &halves.back() ? add_last : add, half.partner, half.kept);
    }
    std::ranges::reverse(halves);
    for (const auto& half : halves) {
      add_step(strand, send_result, half.partner, half.kept);
      add_step(strand, copy_result, half.partner, half.given);
    }
    if (group.speaks_for_two(place.rank)) add_step(strand, send_result, place.rank - 1, range);
  });
}

// ---- trees ----

namespace {

// The children of a number in a binomial tree that grows from 0, nearest first.
std::vector<uint32_t> children_of(uint32_t number, uint32_t size) {
  std::vector<uint32_t> children;
  for (uint64_t distance = 1; distance < size && (number & distance) == 0; distance *= 2)
    if (number + distance < size) children.push_back(static_cast<uint32_t>(number + distance));
  return children;
}

uint32_t parent_of(uint32_t number) {
  return number & (number - 1);
}

} // namespace

collective_plan plan_tree(group_place place, uint64_t elements, plan_grain grain) {
  TROUPE_ASSERT(place.size > 1);
  auto children = children_of(place.rank, place.size);
  return plan_segments(elements, grain, [&](plan_strand& strand, element_range range) {
    for (auto child : children) {
      auto is_last = place.rank == 0 && child == children.back();
      add_step(strand, is_last ? add_last : add, child, range);
    }
    if (place.rank != 0) {
      add_step(strand, send_partial, parent_of(place.rank), range);
      add_step(strand, copy_result, parent_of(place.rank), range);
    }
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      add_step(strand, send_result, *child, range);
  });
}

collective_plan plan_tree_broadcast(group_place place, uint32_t root, uint64_t elements,
                                    plan_grain grain) {
  auto rank_of = [&](uint32_t number) {
    return static_cast<uint32_t>((uint64_t{number} + root) % place.size);
  };
  auto number = before(place, root);
  auto children = children_of(number, place.size);
  return plan_segments(elements, grain, [&](plan_strand& strand, element_range range) {
    if (number != 0) add_step(strand, copy_result, rank_of(parent_of(number)), range);
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      add_step(strand, send_result, rank_of(*child), range);
  });
}

collective_plan plan_chain_broadcast(group_place place, uint32_t root, uint64_t elements,
                                     plan_grain grain) {
  return plan_segments(elements, grain, [&](plan_strand& strand, element_range range) {
    if (place.rank != root) add_step(strand, copy_result, before(place), range);
    if (after(place) != root) add_step(strand, send_result, after(place), range);
  });
}

collective_plan plan_direct_broadcast(group_place place, uint32_t root, uint64_t elements,
                                      plan_grain grain) {
  return plan_segments(elements, grain, [&](plan_strand& strand, element_range range) {
    if (place.rank != root)
      strand.push_back({copy_result, root, range});
    else if (place.size > 1)
      strand.push_back({send_result, everybody, range});
  });
}

} // namespace troupe
