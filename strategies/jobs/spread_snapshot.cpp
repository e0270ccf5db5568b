// SPDX-License-Identifier: Apache-2.0
// A snapshot as the contents of a checkpoint file: its arrays travel one by one.
#include "strategies/jobs/spread_snapshot.hpp"

#include "actors/checkpoint/job_file.hpp"
#include "messages/checks/limits.hpp"
#include "messages/errors/failure.hpp"
#include "messages/errors/throw_failure.hpp"
#include "strategies/contexts/gathered_texts.hpp"

#include <algorithm>
#include <fmt/ranges.h>
#include <sstream>

namespace troupe {

namespace {

constexpr const char* purpose = "what the job goes on from";

/// An array that the first process is to send.
struct announced_array {
  std::string name;
  dtype type = dtype::f32;
  std::vector<int64_t> dims;
};

// The content but for the elements: "f32" as a number, the rank, the extents, the length of the
// name, the name.
std::string described(const safetensors_content& content) {
  auto text = fmt::format("{}\n", content.tensors.size());
  for (const auto& [name, value] : content.tensors)
    text += fmt::format("{} {} {} {} {}\n", static_cast<int>(value.type()), value.rank(),
                        fmt::join(value.extents().dims(), " "), name.size(), name);
  for (const auto& [key, value] : content.metadata)
    text += fmt::format("{} {} {} {}\n", key.size(), key, value.size(), value);
  return text;
}

std::string read_text(std::istream& from) {
  size_t length = 0;
  from >> length;
  from.ignore();
  std::string text;
  for (; length > 0 && from; --length)
    text += static_cast<char>(from.get());
  return text;
}

std::vector<announced_array> read_announced(std::istream& from) {
  size_t count = 0;
  from >> count;
  std::vector<announced_array> arrays;
  while (count-- > 0 && from) {
    size_t type = 0;
    size_t rank = 0;
    from >> type >> rank;
    if (type >= dtype_count || rank > limits::rank_max) break;
    auto& array = arrays.emplace_back();
    array.type = static_cast<dtype>(type);
    array.dims.resize(rank);
    for (auto& extent : array.dims)
      from >> extent;
    array.name = read_text(from);
  }
  return arrays;
}

bool have_elements(const std::vector<int64_t>& dims, int64_t elements) {
  if (std::ranges::any_of(dims, [](int64_t extent) { return extent < 0; })) return false;
  if (std::ranges::count(dims, 0) > 0) return elements == 0;
  for (auto extent : dims) {
    if (elements % extent != 0) return false;
    elements /= extent;
  }
  return elements == 1;
}

// A received array, in the form in which it was announced.
named_tensor shaped(const announced_array& array, const tensor& flat) {
  if (!have_elements(array.dims, flat.extents()[0]))
    throw_failure(errc::malformed, "{}: '{}' has other elements than announced", purpose,
                  array.name);
  return {array.name, flat.reshape(shape{array.dims})};
}

tensor flat(const tensor& value) {
  return value.contiguous().reshape({static_cast<int64_t>(value.element_count())});
}

// One call for all arrays, of which only the first process has any.
std::vector<tensor> gathered(strategy& strategy, std::vector<tensor> own) {
  return strategy.cross_replica([own = std::move(own)](cross_replica_context& context) {
    return context.reducing().gather_rows(purpose, own);
  });
}

} // namespace

std::optional<job_snapshot> spread_snapshot(strategy& strategy,
                                            const std::optional<job_snapshot>& own) {
  const auto& group = strategy.layout().group;
  if (!group) return own;
  auto leads = group->rank == 0;
  safetensors_content content;
  if (leads && own) content = to_content(*own);
  auto text = gather_texts(strategy, purpose, leads && own ? described(content) : "").front();
  if (text.empty()) return std::nullopt;

  std::istringstream from{text};
  auto arrays = read_announced(from);
  std::vector<tensor> parts;
  for (size_t i = 0; i < arrays.size(); ++i)
    parts.push_back(leads ? flat(content.tensors[i].value) : tensor{arrays[i].type, {0}});
  auto all = gathered(strategy, std::move(parts));
  if (leads) return own;
  for (size_t i = 0; i < arrays.size(); ++i)
    content.tensors.push_back(shaped(arrays[i], all[i]));
  while (from >> std::ws && from.peek() != std::istream::traits_type::eof()) {
    auto key = read_text(from);
    content.metadata[key] = read_text(from);
  }
  return value_or_throw(to_snapshot(content));
}

} // namespace troupe
