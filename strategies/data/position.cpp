// SPDX-License-Identifier: Apache-2.0
// Writes positions, and refuses those of another dataset.
#include "strategies/data/position.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

// More elements than any job reads in a pass; rows in that many batches still fit 64 bits.
constexpr int64_t delivered_max = int64_t{1} << 53;

} // namespace

tensor make_position(const data_position& at, uint64_t size) {
  tensor position{dtype::i64, {3}};
  auto numbers = position.mutable_values<int64_t>();
  numbers[0] = static_cast<int64_t>(at.delivered);
  numbers[1] = static_cast<int64_t>(size);
  numbers[2] = static_cast<int64_t>(at.pass);
  return position;
}

expected<data_position> read_position(const tensor& position, uint64_t size,
                                      std::string_view things) {
  const auto& extents = position.extents();
  if (position.type() != dtype::i64 || (extents != shape{3} && extents != shape{2}))
    return fail(errc::invalid_argument, "restore: this is not the position of a dataset");
  const auto saved = position.contiguous();
  const auto numbers = saved.values<int64_t>();
  const auto delivered = static_cast<uint64_t>(numbers[0]);
  if (static_cast<uint64_t>(numbers[1]) != size) {
    return fail(errc::invalid_argument,
                fmt::format("restore: the position is one in a dataset of {} {}, this one has {}: "
                            "the data or the stages have changed",
                            numbers[1], things, static_cast<int64_t>(size)));
  }
  if (numbers[0] < 0 || numbers[0] > delivered_max || delivered > size) {
    return fail(errc::invalid_argument,
                fmt::format("restore: {} {} cannot have been delivered of {}", numbers[0], things,
                            numbers[1]));
  }
  const auto pass = numbers.size() > 2 ? numbers[2] : 0;
  if (pass < 0)
    return fail(errc::invalid_argument, fmt::format("restore: there is no pass {}", pass));
  return data_position{delivered, static_cast<uint64_t>(pass)};
}

} // namespace troupe
