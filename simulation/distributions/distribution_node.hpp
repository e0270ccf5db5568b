// SPDX-License-Identifier: Apache-2.0
// The tree behind an expression of computing times.
#pragma once

#include "messages/errors/errc.hpp"
#include "simulation/distributions/distribution_family.hpp"
#include "simulation/distributions/trace_table.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One part of an expression.
///
/// | kind       | numbers                   | parts              |
/// |------------|---------------------------|--------------------|
/// | number     | seconds or a factor       |                    |
/// | family     | its parameters            |                    |
/// | sum        |                           | at least two       |
/// | product    |                           | at least two       |
/// | mixture    | a weight for each part    | at least one       |
/// | persistent, common |                   | one                |
/// | correlated | rho                       | one                |
/// | on_off     | enter, leave, factor      |                    |
/// | pause      | every, length             |                    |
/// | slow_share | count, of, factor         |                    |
/// | slow_list  | factor, replicas          |                    |
/// | trace      |                           |                    |
struct distribution_node {
  enum class kinds : uint8_t {
    number,
    family,
    sum,
    product,
    mixture,
    persistent,
    common,
    correlated,
    on_off,
    pause,
    slow_share,
    slow_list,
    trace,
  };

  kinds kind = kinds::number;
  std::vector<double> numbers;
  std::vector<distribution_node> parts;
  const distribution_family* family = nullptr;
  std::string file; ///< The file of a trace.
  std::shared_ptr<const trace_table> trace;
  std::string stream; ///< Names the draws that are not of one replica and one draw; unique.
  size_t index = 0;   ///< Unique within the tree, from 0.
};

/// The longest time that is drawn, in seconds; longer ones are cut.
inline constexpr double distribution_seconds_max = 1e9;

/// Reads an expression. Parameters and errors: as of `distribution::parse`.
[[nodiscard]] expected<distribution_node> parse_distribution(std::string_view text,
                                                             std::string_view about_units);

/// Writes it. @returns What `parse_distribution` reads to the same draws.
[[nodiscard]] std::string print_distribution(const distribution_node& node);

/// @returns As `distribution::mean`.
[[nodiscard]] std::optional<double> mean_of_distribution(const distribution_node& node);

/// @returns As `distribution::tail_index`.
[[nodiscard]] double tail_index_of(const distribution_node& node, uint32_t replicas);

} // namespace troupe
