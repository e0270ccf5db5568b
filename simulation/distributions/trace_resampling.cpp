// SPDX-License-Identifier: Apache-2.0
// The places of a trace's blocks, drawn by the seed.
#include "simulation/distributions/trace_resampling.hpp"

#include "kernels/tensor/random.hpp"

#include <cmath>
#include <numeric>
#include <utility>

namespace troupe {

trace_resampling::trace_resampling(std::shared_ptr<const trace_table> table, uint64_t seed,
                                   const std::string& stream)
  : table_(std::move(table)), seed_(seed), places_("places in the trace of " + stream),
    orders_("orders of the trace of " + stream) {}

double trace_resampling::at(uint32_t replica, uint64_t draw) {
  auto replica_count = static_cast<uint32_t>(table_->seconds.size());
  auto group = replica / replica_count;
  auto column = replica % replica_count;
  const auto& times = table_->seconds[group == 0 ? column : columns_of(group)[column]];
  if (group == 0) {
    if (draw < times.size()) return times[draw];
    draw -= times.size();
  }
  auto length = block_length(times.size());
  auto first = first_of_block(group, draw / length, times.size());
  return times[(first + draw % length) % times.size()];
}

uint64_t trace_resampling::block_length(uint64_t draw_count) {
  return static_cast<uint64_t>(std::ceil(std::sqrt(static_cast<double>(draw_count))));
}

const std::vector<uint32_t>& trace_resampling::columns_of(uint32_t group) {
  auto& order = columns_[group];
  if (!order.empty()) return order;
  order.resize(table_->seconds.size());
  std::iota(order.begin(), order.end(), 0U);
  random_stream stream{random_key{seed_, orders_, group}};
  for (size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[stream.below(i + 1)]);
  return order;
}

// By a share of the draws, so that replicas with as many draws have one place.
uint64_t trace_resampling::first_of_block(uint32_t group, uint64_t block,
                                          uint64_t draw_count) const {
  random_stream stream{random_key{seed_, places_, group, block}};
  return static_cast<uint64_t>(stream.uniform() * static_cast<double>(draw_count));
}

} // namespace troupe
