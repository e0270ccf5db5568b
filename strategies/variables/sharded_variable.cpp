// SPDX-License-Identifier: Apache-2.0
// Reads, changes and cuts a table by the rows of its shards.
#include "strategies/variables/sharded_variable.hpp"

#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/gradient_values.hpp"
#include "strategies/contexts/strategy_extended.hpp"
#include "strategies/reduce/cross_device_ops.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

namespace troupe {

namespace {

// Separates the name of the table from the number in the name of a shard.
constexpr std::string_view part_ending{"/part_"};

std::vector<int64_t> without_rows(const variable& shard) {
  auto dims = shard.extents().dims();
  if (dims.empty())
    throw_failure(errc::invalid_argument, "variable '{}' is a scalar, which is no shard",
                  shard.name());
  return {dims.begin() + 1, dims.end()};
}

void check_alike(const variable& first, const variable& other) {
  if (&other.owner_strategy() != &first.owner_strategy())
    throw_failure(errc::invalid_argument, "the shards '{}' and '{}' are of different strategies",
                  first.name(), other.name());
  if (other.type() != first.type())
    throw_failure(errc::invalid_argument,
                  "all shards must have the same dtype, but '{}' is {} and '{}' is {}",
                  first.name(), to_string(first.type()), other.name(), to_string(other.type()));
  if (without_rows(other) != without_rows(first))
    throw_failure(
      errc::invalid_argument,
      "all shards must have the same shapes except for the first axis, but '{}' has {} and "
      "'{}' has {}",
      first.name(), to_string(first.extents()), other.name(), to_string(other.extents()));
}

void check_row_numbers(const std::string& name, const tensor& rows) {
  if (rows.type() != dtype::i64 || rows.rank() != 1)
    throw_failure(errc::type_mismatch,
                  "rows of '{}' are found by a list of i64, not {} of shape {}", name,
                  to_string(rows.type()), to_string(rows.extents()));
}

// Whether a name is the name of a shard: "table/part_3".
bool is_part(std::string_view name) {
  auto digits = name.size() - std::min(name.size(), name.find_last_not_of("0123456789") + 1);
  return digits > 0 && name.substr(0, name.size() - digits).ends_with(part_ending);
}

int64_t shard_count(const std::string& name, const tensor& initial,
                    const partitioner& partitioner) {
  if (!partitioner) return 1;
  auto partitions = partitioner(initial.extents(), initial.type());
  if (partitions.size() != initial.rank() || partitions.empty())
    throw_failure(errc::invalid_argument,
                  "the partitioner gives {} numbers for the {} axes of '{}'", partitions.size(),
                  initial.rank(), name);
  if (std::any_of(partitions.begin() + 1, partitions.end(), [](auto parts) { return parts != 1; }))
    throw_failure(
      errc::invalid_argument,
      "the partitioner cuts '{}' along another axis than the first, which is not possible", name);
  auto rows = std::max<int64_t>(1, initial.extents().dims().front());
  if (partitions.front() < 1 || partitions.front() > rows)
    throw_failure(errc::invalid_argument, "the partitioner makes {} shards of the {} rows of '{}'",
                  partitions.front(), initial.extents().dims().front(), name);
  return partitions.front();
}

} // namespace

// The names of shards show that a table was cut into them. Some shards of a table, or shards of two
// tables, would be saved and restored as a table that does not exist.
void sharded_variable::check_whole() const {
  auto table = name();
  auto part = [&](size_t i) { return fmt::format("{}{}{}", table, part_ending, i); };
  auto is_cut = table != shards_.front().name();
  for (size_t i = 0; i < shards_.size(); ++i)
    if (const auto& own = shards_[i].name(); is_cut ? own != part(i) : is_part(own))
      throw_failure(
        errc::invalid_argument,
        "'{}' cannot be shard {} of '{}': it is cut from a table; give all shards of that, in "
        "order, or variables of their own",
        own, i, table);
  auto made = shards_.front().owner_strategy().variables();
  if (is_cut && std::ranges::count(made, part(shards_.size()), &variable::name) > 0)
    throw_failure(errc::invalid_argument,
                  "'{}' has more than these {} shards; give all of them, in order", table,
                  shards_.size());
}

sharded_variable::sharded_variable(std::vector<variable> shards) : shards_(std::move(shards)) {
  if (shards_.empty())
    throw_failure(errc::invalid_argument, "Expected a list of variables as shards, and got none");
  offsets_.push_back(0);
  for (const auto& shard : shards_) {
    check_alike(shards_.front(), shard);
    offsets_.push_back(offsets_.back() + shard.extents().dims().front());
  }
  check_whole();
}

sharded_variable sharded_variable::make(strategy& strategy, const std::string& name,
                                        const tensor& initial, const partitioner& partition,
                                        const variable_options& options) {
  auto count = shard_count(name, initial, partition);
  if (count == 1) return sharded_variable{{strategy.make_variable(name, initial, options)}};
  auto offsets = shard_offsets(initial.extents().dims().front(), count);
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i)
    names.push_back(fmt::format("{}{}{}", name, part_ending, i));
  strategy.extended().deferred().cut({name, initial.type(), initial.extents()}, names, offsets);
  std::vector<variable> shards;
  for (size_t i = 0; i < names.size(); ++i)
    shards.push_back(
      strategy.make_variable(names[i], initial.slice(offsets[i], offsets[i + 1]), options));
  return sharded_variable{std::move(shards)};
}

sharded_variable strategy::make_sharded_variable(const std::string& name, const tensor& initial,
                                                 const variable_options& options) {
  if (initial.rank() == 0)
    throw_failure(
      errc::invalid_argument,
      "variable '{}' is a scalar, which has no rows to share out: make it by make_variable", name);
  auto in_one_piece = fixed_shards_partitioner(1);
  const auto& chosen = layout_.variable_partitioner ? layout_.variable_partitioner : in_one_piece;
  return sharded_variable::make(*this, name, initial, chosen, options);
}

std::string sharded_variable::name() const {
  auto name = shards_.front().name();
  auto ending = fmt::format("{}0", part_ending);
  if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

shape sharded_variable::extents() const {
  auto dims = shards_.front().extents().dims();
  dims.front() = offsets_.back();
  return shape{dims};
}

void sharded_variable::refuse_row(int64_t row) const {
  throw_failure(errc::out_of_range, "row {} of '{}' and the shards behind it, which have {} rows",
                row, shards_.front().name(), offsets_.back());
}

size_t sharded_variable::shard_of(int64_t row) const {
  if (row < 0 || row >= offsets_.back()) refuse_row(row);
  auto behind = std::upper_bound(offsets_.begin(), offsets_.end(), row);
  return static_cast<size_t>(behind - offsets_.begin()) - 1;
}

void sharded_variable::check_like(const char* call, const shape& extents) const {
  if (extents != this->extents())
    throw_failure(errc::invalid_argument, "{} of '{}' and the shards behind it: shape {} is not {}",
                  call, shards_.front().name(), to_string(extents), to_string(this->extents()));
}

task<tensor> sharded_variable::read(variable_access& context) const {
  auto shards = shards_;
  std::vector<tensor> values;
  for (const auto& shard : shards) {
    auto reading = context.read(shard);
    auto value = co_await reading;
    values.push_back(value);
  }
  co_return cross_device_ops::gather(values, 0);
}

task<tensor> sharded_variable::lookup(variable_access& context, tensor rows) const {
  auto whole = *this;
  check_row_numbers(whole.shards_.front().name(), rows);
  auto row_numbers = rows.contiguous();
  std::map<size_t, tensor> values; // by shard
  for (auto row : row_numbers.values<int64_t>())
    values.emplace(whole.shard_of(row), tensor{});
  for (auto& [shard, value] : values) {
    auto reading = context.read(whole.shards_[shard]);
    auto now = co_await reading;
    value = now.contiguous();
  }
  auto dims = whole.shards_.front().extents().dims();
  dims.front() = static_cast<int64_t>(row_numbers.element_count());
  tensor result{whole.type(), shape{dims}};
  if (result.bytes() == 0) co_return result;
  auto row_bytes = result.bytes() / row_numbers.element_count();
  auto* to = static_cast<std::byte*>(result.mutable_data());
  for (auto row : row_numbers.values<int64_t>()) {
    auto shard = whole.shard_of(row);
    const auto* from = static_cast<const std::byte*>(values.at(shard).data());
    std::memcpy(to, from + static_cast<size_t>(row - whole.offsets_[shard]) * row_bytes, row_bytes);
    to += row_bytes;
  }
  co_return result;
}

task<tensor> sharded_variable::row(variable_access& context, int64_t index) const {
  auto count = offsets_.back();
  if (index < -count) refuse_row(index);
  auto dims = shards_.front().extents().dims();
  tensor rows{dtype::i64, {1}};
  rows.mutable_values<int64_t>()[0] = index < 0 ? index + count : index;
  auto looking = lookup(context, rows);
  auto found = co_await looking;
  shape of_row{std::vector<int64_t>{dims.begin() + 1, dims.end()}};
  co_return tensor::wrap_read_only(found.data(), found.type(), of_row,
                                   std::make_shared<const tensor>(found));
}

task<tensor> sharded_variable::slice(variable_access& context, std::optional<int64_t> begin,
                                     std::optional<int64_t> end, int64_t step) const {
  auto numbers = slice_numbers(offsets_.back(), begin, end, step);
  tensor rows{dtype::i64, {static_cast<int64_t>(numbers.size())}};
  std::copy(numbers.begin(), numbers.end(), rows.mutable_values<int64_t>().begin());
  return lookup(context, rows);
}

task<void> sharded_variable::change_all(variable_access& context, change operation,
                                        tensor operand) const {
  auto whole = *this;
  for (size_t i = 0; i < whole.shards_.size(); ++i) {
    auto part = operand.slice(whole.offsets_[i], whole.offsets_[i + 1]);
    auto changing = operation == change::assign ? context.assign(whole.shards_[i], part)
                    : operation == change::add  ? context.assign_add(whole.shards_[i], part)
                                                : context.assign_sub(whole.shards_[i], part);
    co_await changing;
  }
}

task<void> sharded_variable::assign(variable_access& context, tensor value) const {
  check_like("assign", value.extents());
  return change_all(context, change::assign, std::move(value));
}

task<void> sharded_variable::assign_add(variable_access& context, tensor delta) const {
  check_like("assign_add", delta.extents());
  return change_all(context, change::add, std::move(delta));
}

task<void> sharded_variable::assign_sub(variable_access& context, tensor delta) const {
  check_like("assign_sub", delta.extents());
  return change_all(context, change::subtract, std::move(delta));
}

// All shards get a gradient: they are updated together, and equally often.
std::vector<gradient_and_variable> sharded_variable::split(const gradient& gradient) const {
  std::vector<gradient_and_variable> parts;
  if (const auto* dense = std::get_if<tensor>(&gradient)) {
    check_like("a gradient", dense->extents());
    for (size_t i = 0; i < shards_.size(); ++i)
      parts.push_back({dense->slice(offsets_[i], offsets_[i + 1]), shards_[i]});
    return parts;
  }
  auto sparse = with_wide_indices(std::get<indexed_slices>(gradient));
  if (sparse.dense_extents.rank() > 0) check_like("a gradient", sparse.dense_extents);
  check_row_numbers(shards_.front().name(), sparse.indices);
  auto indices = sparse.indices.contiguous();
  auto rows = indices.values<int64_t>();
  auto value_rows = sparse.values.rank() == 0 ? 0 : static_cast<size_t>(sparse.values.extents()[0]);
  if (sparse.values.rank() == 0 || value_rows != rows.size())
    throw_failure(errc::invalid_argument, "a gradient of '{}' has {} row numbers, but {} rows",
                  name(), rows.size(), value_rows);
  std::vector<std::vector<int64_t>> places(shards_.size()); // in the slices, by shard
  for (size_t i = 0; i < rows.size(); ++i)
    places[shard_of(rows[i])].push_back(static_cast<int64_t>(i));
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    tensor own{dtype::i64, {static_cast<int64_t>(places[shard].size())}};
    std::vector<tensor> values{sparse.values.slice(0, 0)};
    for (size_t i = 0; i < places[shard].size(); ++i) {
      auto place = places[shard][i];
      own.mutable_values<int64_t>()[i] = rows[static_cast<size_t>(place)] - offsets_[shard];
      values.push_back(sparse.values.slice(place, place + 1));
    }
    indexed_slices part{own, cross_device_ops::gather(values, 0), shards_[shard].extents()};
    parts.push_back({std::move(part), shards_[shard]});
  }
  return parts;
}

std::vector<int64_t> slice_numbers(int64_t count, std::optional<int64_t> begin,
                                   std::optional<int64_t> end, int64_t step) {
  if (step == 0) throw_failure(errc::invalid_argument, "the step of a slice is 0");
  auto lowest = step > 0 ? int64_t{0} : int64_t{-1};
  auto highest = step > 0 ? count : count - 1;
  auto cut
    = [&](int64_t bound) { return std::clamp(bound < 0 ? bound + count : bound, lowest, highest); };
  auto from = begin ? cut(*begin) : (step > 0 ? lowest : highest);
  auto to = end ? cut(*end) : (step > 0 ? highest : lowest);
  std::vector<int64_t> numbers;
  auto is_inside = [&](int64_t number) { return step > 0 ? number < to : number > to; };
  for (auto number = from; is_inside(number); number += step) {
    numbers.push_back(number);
    if (step > 0 ? step >= to - number : step <= to - number) break; // and so never overflows
  }
  return numbers;
}

} // namespace troupe
