// SPDX-License-Identifier: Apache-2.0
// A text as Slurm's lists of hosts and of tasks on each, and as an address: what is accepted must
// have as many parts as one machine can hold.
#include "actors/net/host_port.hpp"
#include "messages/errors/assert.hpp"
#include "strategies/cluster/host_list.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

bool accepts(std::span<const std::byte> input) {
  auto text = text_of(input);
  if (auto address = parse_host_port(text)) {
    auto again = parse_host_port(to_string(*address));
    TROUPE_ASSERT(again == address, text);
  }
  if (auto counts = expand_tasks_per_node(text))
    TROUPE_ASSERT(counts->size() <= launcher_number_max);
  auto hosts = expand_hostlist(text);
  if (!hosts) {
    TROUPE_ASSERT(!hosts.error().message.empty());
    return false;
  }
  TROUPE_ASSERT(hosts->size() <= launcher_number_max, hosts->size());
  return true;
}

} // namespace troupe::fuzz
