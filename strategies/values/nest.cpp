// SPDX-License-Identifier: Apache-2.0
// Refuses nests and distributed values that do not fit the replicas.
#include "strategies/values/nest.hpp"

#include "messages/errors/throw_failure.hpp"

namespace troupe {

void refuse_replica(size_t replica, size_t count) {
  if (replica == no_replica)
    throw_failure(
      errc::invalid_argument,
      "a value of {} replicas was given to an update that all of them share, which needs one "
      "value for all; reduce it first",
      count);
  throw_failure(
    errc::invalid_argument,
    "replica {} has no part of a value of {} replicas; a value goes only to the strategy that "
    "it was made for",
    replica, count);
}

void refuse_structures(size_t replica, const std::string& structure, const std::string& first) {
  throw_failure(
    errc::invalid_argument,
    "replica {} has {}, replica 0 has {}; the values of all replicas must have one structure",
    replica, structure, first);
}

variable detail::regroup_leaves::operator()(const std::vector<variable*>& values) const {
  for (size_t i = 1; i < values.size(); ++i)
    if (*values[i] != *values[0])
      throw_failure(
        errc::invalid_argument,
        "replica {} brings variable '{}', replica 0 '{}'; all have to bring the same one", i,
        values[i]->name(), values[0]->name());
  return *values.front();
}

} // namespace troupe
