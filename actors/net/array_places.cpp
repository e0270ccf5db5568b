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
  places_.insert_or_assign({receiver, part}, entry{std::move(place)});
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
  if (found == places_.end() || found->second.is_taken) return std::nullopt;
  if (found->second.place.memory.size() != part->array_bytes) return std::nullopt;
  found->second.is_taken = true;
  return found->second.place;
}

bool array_places::accept(uint64_t receiver, const collective_part_key& part, const void* array) {
  std::lock_guard guard{mutex_};
  auto found = places_.find({receiver, part});
  if (found == places_.end()) return true;
  if (found->second.is_taken) return found->second.place.memory.data() == array;
  places_.erase(found);
  return true;
}

void array_places::forget(uint64_t receiver, uint64_t call) {
  forget({receiver, {.call = call}}, {receiver, {.call = call + 1}});
}

void array_places::forget(uint64_t receiver) {
  forget({receiver, {}}, {receiver + 1, {}});
}

void array_places::forget(const key& first, const key& last) {
  std::lock_guard guard{mutex_};
  places_.erase(places_.lower_bound(first), places_.lower_bound(last));
}

} // namespace troupe
