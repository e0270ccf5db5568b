// SPDX-License-Identifier: Apache-2.0
// The order of events at one moment of virtual time.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

/// The finaliser of SplitMix64: a bijection whose outputs look independent.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
[[nodiscard]] constexpr uint64_t mixed(uint64_t bits) {
  bits += 0x9e3779b97f4a7c15;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// An actor's name as a number.
[[nodiscard]] inline uint64_t identity_of(const std::string& name) {
  return std::hash<std::string>{}(name);
}

/// The seed ranks all actors anew at each moment; the least goes first. So the order does not
/// depend on what was before.
[[nodiscard]] constexpr uint64_t moment_rank(uint64_t seed, job_time moment, uint64_t identity) {
  return mixed(mixed(seed ^ static_cast<uint64_t>(moment.count())) ^ identity);
}

} // namespace troupe
