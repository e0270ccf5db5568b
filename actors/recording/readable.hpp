// SPDX-License-Identifier: Apache-2.0
// Numbers as a person reads them at a glance.
#pragma once

#include "actors/recording/records.hpp"

#include <cstdint>
#include <string>

namespace troupe::readable {

/// A count with its digits in groups of three: 1234567 gives "1,234,567".
[[nodiscard]] std::string count(uint64_t number);

/// A duration with three digits and the unit that fits: "840 ns", "12.3 us", "1.20 ms", "9.87 s",
/// "3 min 05 s", "2 h 07 min".
[[nodiscard]] std::string duration(job_time time);

/// The same of seconds; 0 for less, and 1e9 for more.
[[nodiscard]] std::string duration(double seconds);

/// A duration as clocks show it: "0:07", "2:05", "1:02:07".
[[nodiscard]] std::string clock(job_time time);

/// A rate or other quantity with about three digits: "0.42", "17.3", "12,935"; from 1e15 on as
/// "1.5e+300".
[[nodiscard]] std::string quantity(double number);

} // namespace troupe::readable
