// SPDX-License-Identifier: Apache-2.0
// Collectives as meetings of streams: the last stream to come computes for all.
#include "actors/gpu/cpu_collectives.hpp"

#include "actors/gpu/cpu_stream.hpp"
#include "messages/errors/assert.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <utility>
#include <vector>

namespace troupe {

namespace {

/// One participant's arrays in a collective.
struct device_part {
  std::vector<device_collective> arrays;
  std::function<void()> let_go; ///< Has its stream go on.
};

using device_parts = std::vector<device_part>; // by rank

tensor flat(const tensor& value) {
  return value.reshape({value.extents().element_count()});
}

void copy_to(tensor to, const tensor& from) {
  TROUPE_ASSERT(to.bytes() == from.bytes(), to.bytes(), from.bytes());
  if (from.bytes() > 0) std::memmove(to.mutable_data(), from.data(), from.bytes());
}

tensor sum_of(const device_parts& all, size_t array) {
  auto inputs = mapped(all, [&](const auto& part) { return flat(part.arrays[array].input); });
  tensor sum{inputs.front().type(), inputs.front().extents()};
  add_up(inputs, sum);
  return sum;
}

tensor gathered(const device_parts& all, size_t array) {
  const auto& first = all.front().arrays[array].input;
  tensor result{first.type(), {first.extents().element_count() * static_cast<int64_t>(all.size())}};
  for (size_t rank = 0; rank < all.size(); ++rank) {
    auto length = first.extents().element_count();
    auto begin = static_cast<int64_t>(rank) * length;
    copy_to(result.slice(begin, begin + length), all[rank].arrays[array].input);
  }
  return result;
}

// Outputs may lie where inputs do: all inputs are read before the first output is written.
void combine(const device_parts& all, size_t array) {
  const auto& collective = all.front().arrays[array];
  if (collective.kind == collective_kind::broadcast) {
    auto value = all[collective.root].arrays[array].input.clone();
    for (const auto& part : all)
      copy_to(part.arrays[array].output, value);
    return;
  }
  auto whole
    = collective.kind == collective_kind::all_gather ? gathered(all, array) : sum_of(all, array);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto& output = all[rank].arrays[array].output;
    if (collective.kind != collective_kind::reduce_scatter) {
      copy_to(output, whole);
      continue;
    }
    auto length = output.extents().element_count();
    auto begin = static_cast<int64_t>(rank) * length;
    copy_to(output, whole.slice(begin, begin + length));
  }
}

} // namespace

/// Devices that belong together.
class cpu_collectives::group {
public:
  explicit group(uint32_t size) : joined_(size) {}

  [[nodiscard]] uint32_t size() const { return static_cast<uint32_t>(joined_.size()); }

  [[nodiscard]] bool enter(uint32_t rank) {
    std::lock_guard guard{mutex_};
    if (joined_[rank]) return false;
    joined_[rank] = true;
    return true;
  }

  [[nodiscard]] bool is_complete() {
    std::lock_guard guard{mutex_};
    return std::ranges::all_of(joined_, [](bool is_there) { return is_there; });
  }

  // The stream of `rank` has come to its collective number `call`.
  void come(uint64_t call, uint32_t rank, device_part part) {
    device_parts all;
    {
      std::lock_guard guard{mutex_};
      auto& meeting = meetings_[call];
      meeting.by_rank.resize(joined_.size());
      meeting.by_rank[rank] = std::move(part);
      if (++meeting.present < joined_.size()) return;
      all = std::move(meeting.by_rank);
      meetings_.erase(call);
    }
    for (size_t array = 0; array < all.front().arrays.size(); ++array)
      combine(all, array);
    for (const auto& part : all)
      part.let_go();
  }

  // Streams of `rank` go on; those of others wait on, as they would for a GPU that has gone.
  void abandon(uint32_t rank) {
    std::vector<std::function<void()>> freed;
    {
      std::lock_guard guard{mutex_};
      for (auto& [call, meeting] : meetings_) {
        if (!meeting.by_rank[rank].let_go) continue;
        freed.push_back(std::exchange(meeting.by_rank[rank].let_go, nullptr));
        --meeting.present;
      }
    }
    for (const auto& let_go : freed)
      let_go();
  }

private:
  struct meeting {
    device_parts by_rank;
    size_t present = 0;
  };

  std::mutex mutex_;
  std::vector<bool> joined_;
  std::map<uint64_t, meeting> meetings_;
};

class cpu_collectives::participant final : public collective_participant {
public:
  participant(std::shared_ptr<group> group, uint32_t rank)
    : group_(std::move(group)), rank_(rank) {}

  ~participant() override { group_->abandon(rank_); }

  [[nodiscard]] expected<bool> is_ready() override {
    if (*is_aborted_) return fail(errc::unavailable, "the group was given up");
    return group_->is_complete();
  }

  [[nodiscard]] expected<void> ask(std::span<const device_collective> collectives,
                                   compute_stream& on) override {
    if (*is_aborted_) return fail(errc::unavailable, "the group was given up");
    auto* stream = dynamic_cast<cpu_stream*>(&on);
    if (stream == nullptr)
      return fail(errc::invalid_argument, "the CPU's collectives are for cpu devices alone");
    stream->hold(
      [group = group_, rank = rank_, call = calls_++, is_aborted = is_aborted_,
       arrays = std::vector(collectives.begin(), collectives.end())](std::function<void()> let_go) {
        if (*is_aborted) return let_go();
        group->come(call, rank, {arrays, std::move(let_go)});
      });
    return {};
  }

  void abort() override {
    *is_aborted_ = true;
    group_->abandon(rank_);
  }

private:
  std::shared_ptr<group> group_;
  uint32_t rank_;
  uint64_t calls_ = 0;
  std::shared_ptr<std::atomic<bool>> is_aborted_ = std::make_shared<std::atomic<bool>>(false);
};

expected<collective_id> cpu_collectives::make_id() {
  std::lock_guard guard{mutex_};
  ++ids_;
  collective_id id{};
  std::memcpy(id.data(), &ids_, sizeof(ids_));
  return id;
}

expected<std::unique_ptr<collective_participant>>
cpu_collectives::join(const collective_id& id, uint32_t rank, uint32_t size, compute_device&) {
  TROUPE_ASSERT(rank < size, rank, size);
  std::lock_guard guard{mutex_};
  auto group = groups_[id].lock();
  if (!group) {
    group = std::make_shared<cpu_collectives::group>(size);
    groups_[id] = group;
  }
  if (group->size() != size)
    return fail(
      errc::invalid_argument,
      fmt::format("a group of {} devices cannot be joined as one of {}", group->size(), size));
  if (!group->enter(rank))
    return fail(errc::invalid_argument, fmt::format("the group has a device of rank {}", rank));
  return std::make_unique<participant>(std::move(group), rank);
}

} // namespace troupe
