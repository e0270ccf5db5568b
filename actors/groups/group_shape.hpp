// SPDX-License-Identifier: Apache-2.0
// How the members of a group are counted: in one row, or along dimensions with names.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One dimension of a group: eight devices on each host.
struct group_dimension {
  std::string name;
  size_t extent = 1;

  bool operator==(const group_dimension&) const = default;
};

/// The dimensions of a group, the slowest first: member 9 of {"host", 2} x {"device", 8} is device
/// 1 of host 1.
class group_shape {
public:
  /// Errors: throws `failure` with invalid_argument without dimensions, for an extent of 0, a name
  /// that is empty or comes twice, or more than 2^20 members.
  explicit group_shape(std::vector<group_dimension> dimensions);

  [[nodiscard]] const std::vector<group_dimension>& dimensions() const { return dimensions_; }

  /// How many members there are.
  [[nodiscard]] size_t size() const;

  /// The member at a position, one number for each dimension.
  /// Errors: throws `failure` with out_of_range, naming the dimension.
  [[nodiscard]] size_t member(std::initializer_list<size_t> position) const;

  /// "host 1 device 1". @pre member < size()
  [[nodiscard]] std::string name_of(size_t member) const;

  /// The members with a position from `begin` to below `end` in one dimension, in their order.
  /// Errors: throws `failure`: not_found, if there is no such dimension; out_of_range.
  [[nodiscard]] std::vector<size_t> members_within(std::string_view dimension, size_t begin,
                                                   size_t end) const;

  /// The shape of these members. Errors: as above.
  [[nodiscard]] group_shape within(std::string_view dimension, size_t begin, size_t end) const;

private:
  [[nodiscard]] size_t index_of(std::string_view dimension, size_t begin, size_t end) const;

  std::vector<group_dimension> dimensions_;
};

} // namespace troupe
