// SPDX-License-Identifier: Apache-2.0
// Checksums of variables, compared over processes.
#include "strategies/jobs/replica_check.hpp"

#include "kernels/tensor/crc32c.hpp"
#include "messages/errors/throw_failure.hpp"
#include "messages/mapped.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace troupe {

namespace {

std::vector<variable> held_by_all(std::span<const variable> variables) {
  std::vector<variable> held;
  std::ranges::copy_if(variables, std::back_inserter(held), [](const variable& variable) {
    return variable.synchronization() != variable_synchronization::on_read;
  });
  return held;
}

uint32_t checksum_of(const tensor& value) {
  auto whole = value.contiguous();
  return cpu::crc32c({static_cast<const std::byte*>(whole.data()), whole.bytes()});
}

// Shape: [1, variables] i64
tensor checksums_of(strategy& strategy, std::span<const variable> variables) {
  tensor row{dtype::i64, {1, static_cast<int64_t>(variables.size())}};
  std::ranges::transform(
    variables, row.mutable_values<int64_t>().begin(),
    [&](const variable& variable) { return checksum_of(strategy.read(variable)); });
  return row;
}

} // namespace

std::vector<size_t> ranks_that_differ(std::span<const int64_t> checksums) {
  auto most = std::ranges::max_element(
    checksums, {}, [checksums](int64_t sum) { return std::ranges::count(checksums, sum); });
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < checksums.size(); ++rank)
    if (checksums[rank] != *most) ranks.push_back(rank);
  return ranks;
}

void check_replicas(strategy& strategy, std::span<const variable> variables, uint64_t step) {
  const auto& group = strategy.layout().group;
  auto held = held_by_all(variables);
  if (!group || held.empty()) return;
  const std::string purpose = "checksums of variables";
  auto row = checksums_of(strategy, held);
  auto all = strategy.cross_replica([row, purpose](cross_replica_context& context) {
    return context.reducing().gather_rows(purpose, {row});
  });
  auto sums = all.front().values<int64_t>();
  if (sums.size() != group->size * held.size())
    throw_failure(errc::malformed, "{}: {} have come from {} processes; there are {} variables",
                  purpose, sums.size(), group->size, held.size());
  for (size_t i = 0; i < held.size(); ++i) {
    std::vector<int64_t> of_variable;
    for (size_t rank = 0; rank < group->size; ++rank)
      of_variable.push_back(sums[rank * held.size() + i]);
    auto ranks = ranks_that_differ(of_variable);
    if (ranks.empty()) continue;
    auto names = mapped(ranks, [&](auto rank) { return group->names[rank]; });
    throw_failure(
      errc::failed_precondition,
      "after step {}, variable '{}' of {} is not that of the other processes: a step changes "
      "it there by what the others are not told, or a processor errs; go on from an older "
      "checkpoint, and compare after every step to see which one it is",
      step, held[i].name(), fmt::join(names, ", "));
  }
}

} // namespace troupe
