// SPDX-License-Identifier: Apache-2.0
// Snapshots as the contents of checkpoint files: their arrays travel one by one.
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

/// An array that a process is to send.
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
named_tensor shaped(const announced_array& array, const tensor& flat, const std::string& purpose) {
  if (!have_elements(array.dims, flat.extents()[0]))
    throw_failure(errc::malformed, "{}: '{}' has other elements than announced", purpose,
                  array.name);
  return {array.name, flat.reshape(shape{array.dims})};
}

tensor flat(const tensor& value) {
  return value.contiguous().reshape({static_cast<int64_t>(value.element_count())});
}

// One call for all arrays, of which each process has its own.
std::vector<tensor> gathered(strategy& strategy, const std::string& purpose,
                             std::vector<tensor> own) {
  if (own.empty()) return {};
  return strategy.cross_replica([&purpose, own = std::move(own)](cross_replica_context& context) {
    return context.reducing().gather_rows(purpose, own);
  });
}

safetensors_metadata read_metadata(std::istream& from) {
  safetensors_metadata metadata;
  while (from >> std::ws && from.peek() != std::istream::traits_type::eof()) {
    auto key = read_text(from);
    metadata[key] = read_text(from);
  }
  return metadata;
}

} // namespace

std::vector<std::optional<job_snapshot>> gather_snapshots(strategy& strategy,
                                                          const std::string& purpose,
                                                          const std::optional<job_snapshot>& own) {
  const auto& group = strategy.layout().group;
  if (!group) return {own};
  auto content = own ? to_content(*own) : safetensors_content{};
  auto texts = gather_texts(strategy, purpose, own ? described(content) : "");
  std::vector<std::istringstream> streams;
  std::vector<std::vector<announced_array>> announced; // by rank
  std::vector<tensor> parts;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    announced.push_back(read_announced(streams.emplace_back(texts[rank])));
    for (size_t i = 0; i < announced.back().size(); ++i)
      parts.push_back(rank == group->rank ? flat(content.tensors[i].value)
                                          : tensor{announced.back()[i].type, {0}});
  }
  auto arrays = gathered(strategy, purpose, std::move(parts));
  std::vector<std::optional<job_snapshot>> snapshots(texts.size());
  auto next = arrays.begin();
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    safetensors_content received;
    for (const auto& array : announced[rank])
      received.tensors.push_back(shaped(array, *next++, purpose));
    if (rank == group->rank || texts[rank].empty()) continue;
    received.metadata = read_metadata(streams[rank]);
    snapshots[rank] = value_or_throw(to_snapshot(received));
  }
  snapshots[group->rank] = own;
  return snapshots;
}

std::optional<job_snapshot> spread_snapshot(strategy& strategy,
                                            const std::optional<job_snapshot>& own) {
  const auto& group = strategy.layout().group;
  auto leads = !group || group->rank == 0;
  return gather_snapshots(strategy, "what the job goes on from", leads ? own : std::nullopt)
    .front();
}

} // namespace troupe
