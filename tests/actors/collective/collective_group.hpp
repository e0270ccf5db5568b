// SPDX-License-Identifier: Apache-2.0
// A group of communicators on one stage, arrays for them, and what a plain loop makes of these.
#pragma once

#include "actors/collective/collective_plan.hpp"
#include "actors/collective/communicator.hpp"
#include "kernels/tensor/change.hpp"
#include "tests/actors/deterministic_world.hpp"

#include <cstring>
#include <fmt/format.h>
#include <vector>

namespace troupe::test {

/// Elements that differ from each other and add up differently in each order, as far as the type
/// lets them.
inline tensor sample(dtype type, const shape& extents, uint32_t replica) {
  tensor result{type, extents};
  auto count = result.element_count();
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (size_t i = 0; i < count; ++i) {
    auto value = (static_cast<double>((i * 37 + replica * 101) % 1009) - 500) / (3 + replica);
    auto set
      = [&](auto element) { std::memcpy(to + i * sizeof(element), &element, sizeof(element)); };
    switch (type) {
    case dtype::f32:
      set(static_cast<float>(value));
      break;
    case dtype::f64:
      set(value);
      break;
    case dtype::f16:
      set(to_float16(static_cast<float>(value)));
      break;
    case dtype::bf16:
      set(to_bfloat16(static_cast<float>(value)));
      break;
    case dtype::i32:
      set(static_cast<int32_t>(value * 1e7)); // sums overflow
      break;
    case dtype::i64:
      set(static_cast<int64_t>(value * 1e9));
      break;
    }
  }
  return result;
}

/// The left fold of all values; 16-bit types are rounded at the end.
inline tensor folded(const std::vector<tensor>& values) {
  auto type = values.front().type();
  tensor result{type, values.front().extents()};
  auto count = result.element_count();
  auto fold
    = [&]<class T, class From, class Wide, class Narrow>(T, From, Wide wide, Narrow narrow) {
        auto out = result.mutable_values<From>();
        for (size_t i = 0; i < count; ++i) {
          T sum = wide(values[0].values<From>()[i]);
          for (size_t k = 1; k < values.size(); ++k)
            sum = static_cast<T>(sum + wide(values[k].values<From>()[i]));
          out[i] = narrow(sum);
        }
      };
  auto same = [](auto x) { return x; };
  auto to_bits = [](auto x) { return static_cast<std::make_unsigned_t<decltype(x)>>(x); };
  switch (type) {
  case dtype::f32:
    fold(float{}, float{}, same, same);
    break;
  case dtype::f64:
    fold(double{}, double{}, same, same);
    break;
  case dtype::f16:
    fold(
      float{}, float16{}, [](auto x) { return to_float(x); }, to_float16);
    break;
  case dtype::bf16:
    fold(
      float{}, bfloat16{}, [](auto x) { return to_float(x); }, to_bfloat16);
    break;
  case dtype::i32:
    fold(uint32_t{}, int32_t{}, to_bits, [](auto x) { return static_cast<int32_t>(x); });
    break;
  case dtype::i64:
    fold(uint64_t{}, int64_t{}, to_bits, [](auto x) { return static_cast<int64_t>(x); });
    break;
  }
  return result;
}

/// Whether two tensors are the same to the last bit.
inline bool is_same(const tensor& a, const tensor& b) {
  return a.type() == b.type() && a.extents() == b.extents()
         && (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

/// Communicators in a virtual world, and a puppet beside each that makes its calls.
struct communicator_group : deterministic_world {
  /// @param meet Whether they know each other at once.
  explicit communicator_group(uint32_t size, bool meet = true) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      communicator_config config{
        .rank = rank, .size = size, .deadline = deadline, .world = &world, .arrays = arrays};
      for (uint32_t i = 0; i < size; ++i)
        config.names.push_back(fmt::format("worker:{}", i));
      members.push_back(spawn(communicator, std::move(config)));
      callers.emplace_back(world);
    }
    if (meet)
      for (uint32_t rank = 0; rank < size; ++rank)
        this->meet(rank);
  }

  ~communicator_group() {
    for (auto& member : members)
      caf::anon_send_exit(member, caf::exit_reason::kill);
  }

  void meet(uint32_t rank) {
    meet_peers met;
    for (const auto& member : members)
      met.peers.push_back(caf::actor_cast<caf::strong_actor_ptr>(member));
    met.peers[rank] = nullptr;
    caf::anon_send(members[rank], met);
    settle();
  }

  [[nodiscard]] answer<collective_result> call(uint32_t rank, collective_call what) {
    auto result = callers[rank].ask<collective_result>(members[rank], std::move(what));
    settle();
    return result;
  }

  static constexpr job_time deadline = std::chrono::seconds{60};
  /// Where their links would read arrays to, if they had some.
  std::shared_ptr<array_places> arrays = std::make_shared<array_places>();
  std::vector<communicator_actor> members;
  std::vector<puppet> callers;
};

} // namespace troupe::test
