// SPDX-License-Identifier: Apache-2.0
// Places by receiver and part.
#include "actors/net/array_places.hpp"

#include <utility>

namespace troupe {

void array_places::expect(uint64_t receiver, const collective_part_key& part, array_place place) {
  constexpr size_t word_bytes = 8;
  auto is_aligned = reinterpret_cast<uintptr_t>(place.memory.data()) % word_bytes == 0;
  auto bytes = place.memory.size();
  if (bytes < bytes_min || bytes % word_bytes != 0 || !is_aligned) return;
  std::lock_guard guard{mutex_};
  places_.insert_or_assign({receiver, part}, std::move(place));
}

void array_places::forget(uint64_t receiver, uint64_t call) {
  std::lock_guard guard{mutex_};
  auto first = places_.lower_bound({receiver, {.call = call}});
  auto last = places_.lower_bound({receiver, {.call = call + 1}});
  places_.erase(first, last);
}

bool array_places::expects(uint64_t receiver) const {
  std::lock_guard guard{mutex_};
  auto first = places_.lower_bound({receiver, {}});
  return first != places_.end() && std::get<0>(first->first) == receiver;
}

std::optional<array_place> array_places::take(uint64_t receiver,
                                              std::span<const std::byte> beginning) {
  auto part = read_part_beginning(beginning);
  if (!part) return std::nullopt;
  std::lock_guard guard{mutex_};
  auto found = places_.find({receiver, part->key});
  if (found == places_.end() || found->second.memory.size() != part->array_bytes)
    return std::nullopt;
  auto place = std::move(found->second);
  places_.erase(found);
  return place;
}

} // namespace troupe
