// SPDX-License-Identifier: Apache-2.0
// One array for all: replicas count words into a table that is stored once.
#include "strategies/kinds/central_storage_strategy.hpp"

#include <cstdio>
#include <string>
#include <string_view>

using namespace troupe;

namespace {

// How often each letter occurs, as rows of a table: only those that do occur.
indexed_slices count_letters(std::string_view text) {
  std::vector<float> counts(26);
  for (auto letter : text)
    if (letter >= 'a' && letter <= 'z') ++counts[static_cast<size_t>(letter - 'a')];
  std::vector<int64_t> rows;
  std::vector<float> values;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) {
      rows.push_back(static_cast<int64_t>(i));
      values.push_back(counts[i]);
    }
  auto length = static_cast<int64_t>(rows.size());
  tensor indices{dtype::i64, {length}};
  std::copy(rows.begin(), rows.end(), indices.mutable_values<int64_t>().begin());
  return {indices, make_tensor({length, 1}, values), {26, 1}};
}

} // namespace

int main() {
  auto world = world::threads();
  central_storage_strategy strategy{world, {.compute_devices = {"cpu:0", "cpu:1"}}};
  auto table
    = strategy.make_variable("letters", zeros({26, 1}), {.aggregation = variable_aggregation::sum});

  const std::string_view lines[] = {"all the world's a stage", "and all the men and women",
                                    "merely players", "they have their exits"};
  auto pieces = strategy.experimental_distribute_values_from_function([&](value_context at) {
    std::string own;
    for (size_t i = at.replica_id_in_sync_group; i < std::size(lines); i += at.num_replicas_in_sync)
      own += lines[i];
    return own;
  });

  strategy.run(
    [=](replica_context& context, const std::string& text) -> task<void> {
      auto adding = context.scatter_add(table, count_letters(text));
      co_await adding;
    },
    pieces);

  auto counted = strategy.read(table);
  for (char letter : std::string_view{"aeiou"})
    std::printf("%c %g\n", letter, counted.values<float>()[static_cast<size_t>(letter - 'a')]);
}
