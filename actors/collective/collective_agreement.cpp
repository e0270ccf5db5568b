// SPDX-License-Identifier: Apache-2.0
// From a call to what it means, to how it is done.
#include "actors/collective/collective_agreement.hpp"

#include "kernels/tensor/shape.hpp"
#include "messages/checks/limits.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace troupe {

namespace {

// While all contributions make up no more than that, fewer rounds are worth more than fewer bytes.
constexpr uint64_t short_sum_bytes_max = uint64_t{512} << 10;
constexpr uint64_t direct_copy_bytes_max = uint64_t{128} << 10;

// Among more processes, the messages of all to all others cost more than a second round.
constexpr uint32_t direct_sum_processes_max = 3;

// A process that takes in less than that, to add it up, costs more in messages than it spares
// others.
constexpr uint64_t taken_bytes_min = uint64_t{128} << 10;

// Between two processes nothing sends less than the direct way, which is over in one round; but
// beyond that it is not much sooner over, and both add up all of the array.
constexpr uint64_t direct_pair_bytes_max = uint64_t{32} << 20;

// Where cuts are made, so that messages refer to elements instead of copying them.
constexpr uint64_t aligned_bytes = 64;

std::string_view name_of(collective_algorithm algorithm) {
  constexpr std::array<std::string_view, 7> names{"automatic",        "direct", "chain",     "ring",
                                                  "halving_doubling", "tree",   "all_to_all"};
  return names[static_cast<size_t>(algorithm)];
}

// Errors: invalid_argument.
expected<void> check_contributions(const collective_call& call) {
  const auto& first = call.contributions.front();
  auto same_in = [&](const tensor& other, size_t begin) {
    return std::ranges::equal(std::span{other.extents().dims()}.subspan(begin),
                              std::span{first.extents().dims()}.subspan(begin));
  };
  size_t begin = call.kind == collective_kind::all_gather ? 1 : 0;
  if (first.rank() > limits::rank_max)
    return fail(errc::limit_exceeded,
                fmt::format("{} '{}' of {} dimensions; at most {} are possible", name_of(call.kind),
                            call.name, first.rank(), limits::rank_max));
  if (first.rank() == 0
      && (call.kind == collective_kind::all_gather || call.kind == collective_kind::reduce_scatter))
    return fail(errc::invalid_argument,
                fmt::format("{} '{}' of scalars has no axis 0; give tensors of rank 1 or more",
                            name_of(call.kind), call.name));
  for (size_t i = 1; i < call.contributions.size(); ++i) {
    const auto& other = call.contributions[i];
    auto agrees = other.type() == first.type() && other.rank() == first.rank();
    if (!agrees || !same_in(other, begin))
      return fail(errc::invalid_argument,
                  fmt::format("{} '{}': replica {} gives {} {}, replica 0 {} {}; all give the same",
                              name_of(call.kind), call.name, i, to_string(other.type()),
                              to_string(other.extents()), to_string(first.type()),
                              to_string(first.extents())));
  }
  return {};
}

uint64_t element_count(const collective_meaning& meaning) {
  uint64_t count = 1; // without a shape, which would be memory for each short call
  for (auto extent : meaning.extents)
    count *= static_cast<uint64_t>(extent);
  return count;
}

uint64_t bytes_of(const collective_meaning& meaning) {
  return element_count(meaning) * element_bytes(static_cast<dtype>(meaning.dtype));
}

bool keeps_order(collective_algorithm algorithm) {
  return algorithm != collective_algorithm::ring
         && algorithm != collective_algorithm::halving_doubling
         && algorithm != collective_algorithm::tree;
}

collective_algorithm choose_sum(const collective_meaning& meaning, group_place place) {
  using enum collective_algorithm;
  // A process that keeps an order sends all contributions unless it passes sums on.
  auto sent = meaning.fixed_order ? meaning.contributions : 1;
  if (place.size == 2 && sent == 1 && bytes_of(meaning) <= direct_pair_bytes_max) return direct;
  if (bytes_of(meaning) <= short_sum_bytes_max / sent / place.size)
    return place.size <= direct_sum_processes_max ? direct : all_to_all;
  return (sent + 1) * (place.size - 1) <= 2 * place.size ? all_to_all : chain;
}

collective_algorithm choose_broadcast(const collective_meaning& meaning, group_place place,
                                      collective_algorithm wanted) {
  using enum collective_algorithm;
  if (wanted == direct || wanted == tree || wanted == chain) return wanted;
  if (bytes_of(meaning) > direct_copy_bytes_max) return chain;
  return place.size <= 4 ? direct : tree;
}

// Errors: invalid_argument.
expected<collective_algorithm> choose(const collective_meaning& meaning, group_place place,
                                      collective_algorithm wanted) {
  using enum collective_algorithm;
  auto is_all_reduce = meaning.kind == collective_kind::all_reduce;
  if (is_all_reduce && meaning.fixed_order && !keeps_order(wanted))
    return fail(errc::invalid_argument,
                fmt::format("all_reduce '{}' by {} in fixed order: it adds up in an order of its "
                            "own; give fixed_order = false, or another algorithm",
                            meaning.name, name_of(wanted)));
  if (element_count(meaning) == 0) return direct; // all meet, though there is nothing to send
  switch (meaning.kind) {
  case collective_kind::reduce_scatter:
    return all_to_all;
  case collective_kind::broadcast:
    return choose_broadcast(meaning, place, wanted);
  case collective_kind::all_gather:
  case collective_kind::barrier:
    return direct;
  case collective_kind::all_reduce:
    break;
  }
  if (place.size == 1) return direct;
  return wanted == automatic ? choose_sum(meaning, place) : wanted;
}

} // namespace

expected<collective_meaning> meaning_of(const collective_call& call, group_place place) {
  if (call.name.size() > limits::text_bytes_max)
    return fail(errc::limit_exceeded,
                fmt::format("the name of a collective has {} bytes; at most {} are sent",
                            call.name.size(), limits::text_bytes_max));
  auto count = call.contributions.size();
  auto is_barrier = call.kind == collective_kind::barrier;
  if (count > contributions_max)
    return fail(errc::limit_exceeded,
                fmt::format("{} '{}' with {} contributions; a process gives at most {}",
                            name_of(call.kind), call.name, count, contributions_max));
  if (is_barrier != call.contributions.empty())
    return fail(errc::invalid_argument,
                fmt::format("{} '{}' with {} contributions; a barrier takes none, all others one "
                            "for each replica",
                            name_of(call.kind), call.name, count));
  if (call.kind == collective_kind::broadcast && call.root >= place.size)
    return fail(errc::invalid_argument, fmt::format("broadcast '{}' from rank {}; there are {}",
                                                    call.name, call.root, place.size));
  collective_meaning meaning{.kind = call.kind,
                             .fixed_order = call.fixed_order,
                             .contributions = static_cast<uint32_t>(count),
                             .root = call.kind == collective_kind::broadcast ? call.root : 0,
                             .name = call.name};
  if (!is_barrier) {
    if (auto fit = check_contributions(call); !fit) return tl::unexpected<error>(fit.error());
    meaning.dtype = static_cast<uint8_t>(call.contributions.front().type());
    meaning.extents = call.contributions.front().extents().dims();
    if (call.kind == collective_kind::all_gather) meaning.extents[0] = 0; // may differ
  }
  auto algorithm = choose(meaning, place, call.algorithm);
  if (!algorithm) return tl::unexpected<error>(algorithm.error());
  meaning.algorithm = *algorithm;
  return meaning;
}

std::string describe(const collective_meaning& meaning, const collective_meaning& other) {
  auto text = fmt::format("{} '{}'", name_of(meaning.kind), meaning.name);
  if (meaning.kind != collective_kind::barrier)
    text += fmt::format(" of {} {}", to_string(static_cast<dtype>(meaning.dtype)),
                        to_string(shape{meaning.extents}));
  if (meaning.contributions != other.contributions)
    text += fmt::format(" from {} replica{}", meaning.contributions,
                        meaning.contributions == 1 ? "" : "s");
  if (meaning.root != other.root) text += fmt::format(" from rank {}", meaning.root);
  if (meaning.fixed_order != other.fixed_order)
    text += meaning.fixed_order ? " in fixed order" : " in any order";
  if (meaning.algorithm != other.algorithm)
    text += fmt::format(" by {}", name_of(meaning.algorithm));
  return text;
}

error disagreement(const std::string& caller, const collective_meaning& means,
                   const std::string& other, const collective_meaning& other_means) {
  return {
    errc::invalid_argument,
    fmt::format("{} calls {}, {} {}; all processes must make the same calls in the same order",
                caller, describe(means, other_means), other, describe(other_means, means))};
}

namespace {

collective_plan plan_broadcast(const collective_meaning& meaning, group_place place,
                               plan_grain grain) {
  auto elements = element_count(meaning);
  switch (meaning.algorithm) {
  case collective_algorithm::tree:
    return plan_tree_broadcast(place, meaning.root, elements, grain);
  case collective_algorithm::chain:
    return plan_chain_broadcast(place, meaning.root, elements, grain);
  default:
    return plan_direct_broadcast(place, meaning.root, elements, grain);
  }
}

// The first ranks have slices of about the same length, as many as are worth their messages.
std::vector<uint64_t> slice_cuts(const collective_meaning& meaning, group_place place,
                                 plan_grain grain) {
  auto elements = element_count(meaning);
  auto worth_it = bytes_of(meaning) * (place.size - 1) / taken_bytes_min;
  auto slices = std::clamp<uint64_t>(worth_it, 1, place.size);
  auto cuts = even_cuts(elements, static_cast<uint32_t>(slices), grain.aligned_elements);
  cuts.resize(place.size + uint64_t{1}, elements);
  return cuts;
}

collective_plan plan_all_reduce(const collective_meaning& meaning, group_place place,
                                plan_grain grain) {
  auto elements = element_count(meaning);
  switch (meaning.algorithm) {
  case collective_algorithm::chain:
    return plan_chain(place, elements, grain);
  case collective_algorithm::ring:
    return plan_ring(place, elements, grain);
  case collective_algorithm::halving_doubling:
    return plan_halving_doubling(place, elements, grain);
  case collective_algorithm::tree:
    return plan_tree(place, elements, grain);
  case collective_algorithm::all_to_all:
    return plan_all_to_all(place, slice_cuts(meaning, place, grain), grain, true);
  default:
    return plan_direct(place, elements, grain);
  }
}

collective_plan plan_reduce_scatter(const collective_meaning& meaning, group_place place,
                                    plan_grain grain) {
  auto rows = static_cast<uint64_t>(meaning.extents[0]);
  auto elements = element_count(meaning);
  auto width = elements / rows;
  std::vector<uint64_t> cuts;
  for (uint32_t rank = 0; rank < place.size; ++rank)
    cuts.push_back(rows_of({rank, place.size}, rows).begin * width);
  cuts.push_back(elements);
  return plan_all_to_all(place, cuts, grain, false);
}

} // namespace

uint64_t segment_bytes(collective_algorithm algorithm, uint32_t processes) {
  // Shorter ones cost more in messages than they gain by working side by side.
  constexpr auto usual = uint64_t{512} << 10;
  // There a segment is a message to each other process, so that enough are under way.
  auto goes_to_all = algorithm == collective_algorithm::all_to_all && processes > 2;
  return goes_to_all ? 2 * usual : usual;
}

collective_plan plan_of(const collective_meaning& meaning, group_place place) {
  auto bytes = element_bytes(static_cast<dtype>(meaning.dtype));
  plan_grain grain{segment_bytes(meaning.algorithm, place.size) / bytes, aligned_bytes / bytes};
  switch (meaning.kind) {
  case collective_kind::all_reduce:
    return plan_all_reduce(meaning, place, grain);
  case collective_kind::reduce_scatter:
    return meaning.algorithm == collective_algorithm::direct
             ? plan_direct(place, 0, grain) // of nothing
             : plan_reduce_scatter(meaning, place, grain);
  case collective_kind::broadcast:
    return plan_broadcast(meaning, place, grain);
  default:
    return plan_direct(place, 0, grain);
  }
}

} // namespace troupe
