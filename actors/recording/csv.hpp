// SPDX-License-Identifier: Apache-2.0
// Comma-separated values in a form that spreadsheets, gnuplot and awk all read.
#pragma once

#include "actors/recording/records.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace troupe::csv {

/// A text as one field: in quotes, with inner quotes doubled, where it would break the line
/// otherwise. Source: RFC 4180, section 2.
[[nodiscard]] std::string field(std::string_view text);

/// A number as one field, to seven digits. NaN and infinities become an empty field: programs agree
/// on no spelling of NaN, but all of them leave an empty cell out of a sum and out of a plot.
[[nodiscard]] std::string field(double number);

/// Seconds, exact to the nanosecond, without trailing zeros: 1.5 s gives "1.5".
[[nodiscard]] std::string seconds(job_time time);

/// At least one field as a line, line feed included. The fields are written as they are: quote
/// texts by `field` before.
[[nodiscard]] std::string line(std::initializer_list<std::string_view> fields);

} // namespace troupe::csv
