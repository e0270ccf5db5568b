// SPDX-License-Identifier: Apache-2.0
// Steps, and the elements that they are about.
#include "actors/collective/collective_transfer.hpp"

#include "actors/collective/collective_agreement.hpp"
#include "kernels/math/collective_sum.hpp"
#include "messages/errors/assert.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

collective_stage stage_of(step_action action) {
  switch (action) {
  case step_action::send_own:
  case step_action::keep_own:
    return collective_stage::own;
  case step_action::send_result:
  case step_action::copy_result:
    return collective_stage::result;
  default:
    return collective_stage::partial;
  }
}

bool belongs(const collective_part& part, const plan_step& step) {
  return is_receiving(step.action) && step.peer == part.rank && step.range.begin == part.begin
         && stage_of(step.action) == part.stage;
}

// Rows of a contribution without elements, which cost a peer nothing to claim.
constexpr int64_t rows_max = int64_t{1} << 40;

// Elements of a flattened array that begins at `begin`.
tensor part_of(const tensor& whole, uint64_t begin, element_range range) {
  auto bytes = element_bytes(whole.type());
  const auto* data = static_cast<const std::byte*>(whole.data());
  return tensor::wrap_read_only(range.is_empty() ? nullptr : data + (range.begin - begin) * bytes,
                                whole.type(), {static_cast<int64_t>(range.count())}, whole.owner());
}

std::vector<elements> elements_of(const std::vector<tensor>& values) {
  return {values.begin(), values.end()};
}

tensor uninitialised(dtype type, uint64_t count) {
  return {type, shape{static_cast<int64_t>(count)}};
}

} // namespace

collective_transfer::collective_transfer(group_place place, collective_meaning meaning,
                                         std::vector<tensor> contributions, bool in_place)
  : place_(place), meaning_(std::move(meaning)), contributions_(std::move(contributions)),
    in_place_(in_place && may_overwrite()) {
  TROUPE_ASSERT(contributions_.size() == meaning_.contributions, contributions_.size());
  auto plan = plan_of(meaning_, place_);
  strands_at_once_ = plan.strands_at_once;
  strands_.reserve(plan.strands.size());
  for (auto& steps : plan.strands) {
    strands_.emplace_back().steps = std::move(steps);
    ++open_strands_;
  }
  const auto& extents = meaning_.extents;
  switch (meaning_.kind) {
  case collective_kind::barrier:
  case collective_kind::all_gather:
    break;
  case collective_kind::broadcast:
    result_
      = place_.rank == meaning_.root ? contributions_.front() : tensor{type(), shape{extents}};
    break;
  case collective_kind::reduce_scatter: {
    auto rows = static_cast<uint64_t>(extents[0]);
    auto own = rows_of(place_, rows);
    auto width = rows == 0 ? 0 : static_cast<uint64_t>(shape{extents}.element_count()) / rows;
    auto of_own = extents;
    of_own[0] = static_cast<int64_t>(own.count());
    result_ = tensor{type(), shape{std::move(of_own)}};
    result_begin_ = own.begin * width;
    break;
  }
  case collective_kind::all_reduce:
    result_ = in_place_ ? contributions_.front() : tensor{type(), shape{extents}};
    break;
  }
}

void collective_transfer::begin(const send_function& send) {
  begin_more(send);
}

expected<void> collective_transfer::take(collective_part part, const send_function& send) {
  if (part.strand >= strands_.size())
    return fail(errc::malformed,
                fmt::format("a part of strand {} of {}", part.strand, strands_.size()));
  auto part_strand = part.strand;
  auto& strand = strands_[part_strand];
  auto step
    = std::ranges::find_if(strand.steps, [&](const auto& one) { return belongs(part, one); });
  if (step == strand.steps.end())
    return fail(errc::malformed,
                fmt::format("a part that no step waits for: elements from {} on, "
                            "stage {}, strand {}",
                            part.begin, static_cast<int>(part.stage), part.strand));
  if (auto fit = check(part, *step); !fit) return fit;
  auto is_over = step < strand.steps.begin() + static_cast<std::ptrdiff_t>(strand.next);
  auto has_come
    = std::ranges::any_of(strand.arrived, [&](const auto& one) { return belongs(one, *step); });
  if (is_over || has_come) return {};
  strand.arrived.push_back(std::move(part));
  auto is_next = step == strand.steps.begin() + static_cast<std::ptrdiff_t>(strand.next);
  if (!is_next || part_strand >= begun_strands_) return {};
  advance(strand, send);
  begin_more(send);
  return {};
}

bool collective_transfer::needs(uint32_t peer) const {
  for (const auto& strand : strands_)
    for (auto i = strand.next; i < strand.steps.size(); ++i) {
      const auto& step = strand.steps[i];
      if (step.action == step_action::sum_kept) continue;
      auto concerns = step.peer == peer || step.peer == everybody;
      auto has_come
        = std::ranges::any_of(strand.arrived, [&](const auto& one) { return belongs(one, step); });
      if (concerns && !has_come) return true;
    }
  return false;
}

tensor collective_transfer::result() const {
  TROUPE_ASSERT(is_done());
  return result_;
}

// ---- what comes ----

// Sums of 16-bit types are rounded at the end alone, if they are to be the same for any split.
dtype collective_transfer::partial_type() const {
  auto is_half = is_floating(type()) && element_bytes(type()) == 2;
  return is_half && meaning_.fixed_order ? dtype::f32 : type();
}

// Whether a rank sends the sum of its contributions: those of rank 0 come first anyway.
bool collective_transfer::folds(uint32_t rank) const {
  auto is_sum = meaning_.kind == collective_kind::all_reduce
                || meaning_.kind == collective_kind::reduce_scatter;
  return is_sum && meaning_.contributions > 1 && (rank == 0 || !meaning_.fixed_order);
}

expected<void> collective_transfer::check(const collective_part& part,
                                          const plan_step& step) const {
  if (meaning_.kind == collective_kind::all_gather) return check_gathered(part);
  size_t count = meaning_.kind == collective_kind::barrier ? 0 : 1;
  auto wanted = type();
  if (part.stage == collective_stage::own) {
    if (folds(part.rank))
      wanted = partial_type();
    else
      count = meaning_.contributions;
  } else if (part.stage == collective_stage::partial) {
    wanted = partial_type();
  }
  if (part.values.size() != count)
    return fail(errc::malformed,
                fmt::format("a part of {} arrays instead of {}", part.values.size(), count));
  for (const auto& value : part.values) {
    auto bytes = step.range.count() * element_bytes(wanted);
    if (value.type() != wanted || value.bytes() != bytes)
      return fail(errc::malformed,
                  fmt::format("a part of {} bytes of dtype {}, not {} bytes of {}", value.bytes(),
                              static_cast<int>(value.type()), bytes, to_string(wanted)));
  }
  return {};
}

expected<void> collective_transfer::check_gathered(const collective_part& part) const {
  auto fits = [&](const tensor& value) {
    const auto& extents = value.extents().dims();
    return static_cast<uint8_t>(value.type()) == meaning_.dtype
           && extents.size() == meaning_.extents.size() && extents[0] <= rows_max
           && std::equal(extents.begin() + 1, extents.end(), meaning_.extents.begin() + 1);
  };
  if (part.values.size() != meaning_.contributions || !std::ranges::all_of(part.values, fits))
    return fail(errc::malformed, "contributions that are not what they were said to be");
  return {};
}

// ---- what is done ----

// Only some strands of a long array are under way, so that arriving elements find memory that is
// still in the cache.
void collective_transfer::begin_more(const send_function& send) {
  auto under_way = [&] { return begun_strands_ + open_strands_ - strands_.size(); };
  while (begun_strands_ < strands_.size() && under_way() < strands_at_once_)
    advance(strands_[begun_strands_++], send);
}

void collective_transfer::advance(strand_state& strand, const send_function& send) {
  while (strand.next < strand.steps.size() && perform(strand, strand.steps[strand.next], send))
    ++strand.next;
  if (strand.next < strand.steps.size()) return;
  strand.partial.reset();
  strand.kept.clear();
  --open_strands_;
}

bool collective_transfer::perform(strand_state& strand, const plan_step& step,
                                  const send_function& send) {
  auto say = [&](std::vector<tensor> values) {
    send(step.peer, {.stage = stage_of(step.action),
                     .strand = static_cast<uint32_t>(&strand - strands_.data()),
                     .begin = step.range.begin,
                     .values = std::move(values)});
    return true;
  };
  switch (step.action) {
  case step_action::send_own: {
    auto values = own(step.range);
    if (step.peer == everybody) {
      strand.kept.resize(place_.size);
      strand.kept[place_.rank] = values;
    }
    return say(std::move(values));
  }
  case step_action::send_partial:
    return say({partial(strand, step.range)});
  case step_action::send_result:
    return say({result(step.range)});
  case step_action::sum_kept:
    sum_kept(strand, step.range);
    return true;
  default:
    return receive(strand, step);
  }
}

bool collective_transfer::receive(strand_state& strand, const plan_step& step) {
  auto found
    = std::ranges::find_if(strand.arrived, [&](const auto& part) { return belongs(part, step); });
  if (found == strand.arrived.end()) return false;
  auto part = std::move(*found);
  strand.arrived.erase(found);
  switch (step.action) {
  case step_action::keep_own:
    strand.kept.resize(place_.size);
    strand.kept[part.rank] = std::move(part.values);
    break;
  case step_action::copy_result: {
    auto to = result_elements(step.range);
    const auto& from = part.values[0];
    if (to.count > 0 && from.data() != to.data) std::memcpy(to.data, from.data(), from.bytes());
    break;
  }
  default:
    add(strand, step, part.values[0]);
  }
  return true;
}

void collective_transfer::add(strand_state& strand, const plan_step& step, const tensor& received) {
  std::vector<elements> sources{elements{received}};
  auto has_partial = strand.partial && strand.partial->range.covers(step.range);
  auto before = has_partial ? std::vector{partial(strand, step.range)} : contributions(step.range);
  for (const auto& one : before)
    sources.emplace_back(one);
  if (step.action == step_action::add_last) return sum_into_result(sources, step.range);
  piece sum{step.range, uninitialised(partial_type(), step.range.count())};
  sum_in_order(sources, mutable_elements{sum.values});
  strand.partial = std::move(sum);
}

void collective_transfer::sum_kept(strand_state& strand, element_range range) {
  if (meaning_.kind == collective_kind::barrier) return;
  strand.kept.resize(place_.size);
  if (strand.kept[place_.rank].empty()) strand.kept[place_.rank] = own(range);
  if (meaning_.kind == collective_kind::all_gather) {
    strands_.front().kept.swap(strand.kept);
    return gather();
  }
  std::vector<elements> sources;
  sources.reserve(strand.kept.size() * meaning_.contributions);
  for (const auto& values : strand.kept)
    for (const auto& value : values)
      sources.emplace_back(value);
  sum_into_result(sources, range);
}

// Directly, a peer may still have to read elements whose sum is known here.
bool collective_transfer::may_overwrite() const {
  return meaning_.kind == collective_kind::all_reduce && contributions_.size() == 1
         && meaning_.algorithm != collective_algorithm::direct
         && !contributions_.front().read_only();
}

// In place, one of the sources lies where the sum belongs.
void collective_transfer::sum_into_result(std::span<const elements> sources, element_range range) {
  auto to = result_elements(range);
  if (!in_place_) return sum_in_order(sources, to);
  auto sum = uninitialised(type(), range.count());
  sum_in_order(sources, mutable_elements{sum});
  if (to.count > 0) std::memcpy(to.data, sum.data(), sum.bytes());
}

void collective_transfer::gather() {
  auto extents = meaning_.extents;
  extents[0] = 0;
  const auto& kept = strands_.front().kept;
  for (const auto& values : kept)
    for (const auto& value : values)
      extents[0] += value.extents()[0];
  result_ = tensor{type(), shape{extents}};
  auto* to = static_cast<std::byte*>(result_.mutable_data());
  for (const auto& values : kept)
    for (const auto& value : values) {
      if (value.bytes() > 0) std::memcpy(to, value.data(), value.bytes());
      to += value.bytes();
    }
}

// ---- elements ----

// Our contributions as others get them; they are folded once only.
std::vector<tensor> collective_transfer::own(element_range range) const {
  std::vector<tensor> values;
  if (meaning_.kind == collective_kind::all_gather) {
    values = contributions_;
  } else if (meaning_.kind != collective_kind::barrier) {
    values = contributions(range);
    if (folds(place_.rank)) {
      auto sum = uninitialised(partial_type(), range.count());
      sum_in_order(elements_of(values), mutable_elements{sum});
      values = {part_of(sum, range.begin, range)};
    }
  }
  return values;
}

std::vector<tensor> collective_transfer::contributions(element_range range) const {
  return mapped(contributions_, [&](const auto& one) { return part_of(one, 0, range); });
}

tensor collective_transfer::partial(strand_state& strand, element_range range) {
  auto is_there = strand.partial && strand.partial->range.covers(range);
  if (!is_there && contributions_.size() == 1 && partial_type() == type())
    return part_of(contributions_.front(), 0, range);
  if (!is_there) {
    piece sum{range, uninitialised(partial_type(), range.count())};
    sum_in_order(elements_of(contributions(range)), mutable_elements{sum.values});
    strand.partial = std::move(sum);
  }
  return part_of(strand.partial->values, strand.partial->range.begin, range);
}

tensor collective_transfer::result(element_range range) const {
  return part_of(result_, result_begin_, range);
}

mutable_elements collective_transfer::result_elements(element_range range) {
  auto bytes = element_bytes(type());
  mutable_elements to;
  to.data = static_cast<std::byte*>(result_.mutable_data()) + (range.begin - result_begin_) * bytes;
  to.type = type();
  to.count = range.count();
  return to;
}

} // namespace troupe
