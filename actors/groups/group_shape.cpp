// SPDX-License-Identifier: Apache-2.0
// Converting positions to members: numbers with one digit for each dimension, and back.
#include "actors/groups/group_shape.hpp"

#include "messages/errors/failure.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace troupe {

namespace {

constexpr size_t group_members_max = size_t{1} << 20U;

} // namespace

group_shape::group_shape(std::vector<group_dimension> dimensions)
  : dimensions_(std::move(dimensions)) {
  auto refuse_shape = [](std::string why) {
    throw failure{{errc::invalid_argument, "a group " + std::move(why)}};
  };
  if (dimensions_.empty()) refuse_shape("has no dimension: give {\"member\", count}");
  size_t members = 1;
  for (auto dimension = dimensions_.begin(); dimension != dimensions_.end(); ++dimension) {
    const auto& [name, extent] = *dimension;
    if (name.empty()) refuse_shape("has a dimension without a name");
    if (extent == 0) refuse_shape("has no member: dimension '" + name + "' is 0");
    if (std::ranges::count(dimensions_.begin(), dimension, name, &group_dimension::name) > 0)
      refuse_shape("has dimension '" + name + "' twice");
    if (extent > group_members_max / members)
      refuse_shape(fmt::format("has more than {} members", group_members_max));
    members *= extent;
  }
}

size_t group_shape::size() const {
  size_t result = 1;
  for (const auto& dimension : dimensions_)
    result *= dimension.extent;
  return result;
}

size_t group_shape::member(std::initializer_list<size_t> position) const {
  if (position.size() != dimensions_.size())
    throw failure{
      {errc::out_of_range, fmt::format("a position of {} numbers in a group of {} dimensions",
                                       position.size(), dimensions_.size())}};
  size_t result = 0;
  auto dimension = dimensions_.begin();
  for (auto at : position) {
    if (at >= dimension->extent)
      throw failure{{errc::out_of_range, fmt::format("{} {} of a group that has {}",
                                                     dimension->name, at, dimension->extent)}};
    result = result * dimension->extent + at;
    ++dimension;
  }
  return result;
}

std::string group_shape::name_of(size_t member) const {
  std::string result;
  for (auto dimension = dimensions_.rbegin(); dimension != dimensions_.rend(); ++dimension) {
    auto part = fmt::format("{} {}", dimension->name, member % dimension->extent);
    result = result.empty() ? part : part + " " + result;
    member /= dimension->extent;
  }
  return result;
}

size_t group_shape::index_of(std::string_view dimension, size_t begin, size_t end) const {
  auto found = std::ranges::find(dimensions_, dimension, &group_dimension::name);
  if (found == dimensions_.end())
    throw failure{{errc::not_found, fmt::format("a group without dimension '{}'", dimension)}};
  if (begin >= end || end > found->extent)
    throw failure{{errc::out_of_range, fmt::format("{} {} to below {} of a group that has {}",
                                                   dimension, begin, end, found->extent)}};
  return static_cast<size_t>(found - dimensions_.begin());
}

std::vector<size_t> group_shape::members_within(std::string_view dimension, size_t begin,
                                                size_t end) const {
  auto index = index_of(dimension, begin, end);
  size_t stride = 1; // from one position of the dimension to the next
  for (auto i = index + 1; i < dimensions_.size(); ++i)
    stride *= dimensions_[i].extent;
  std::vector<size_t> result;
  for (size_t member = 0; member < size(); ++member) {
    auto at = member / stride % dimensions_[index].extent;
    if (at >= begin && at < end) result.push_back(member);
  }
  return result;
}

group_shape group_shape::within(std::string_view dimension, size_t begin, size_t end) const {
  auto dimensions = dimensions_;
  dimensions[index_of(dimension, begin, end)].extent = end - begin;
  return group_shape{std::move(dimensions)};
}

} // namespace troupe
