// SPDX-License-Identifier: Apache-2.0
// Tasks for the processes of a launcher, which counts processes and knows nothing of jobs.
#pragma once

#include "strategies/cluster/cluster_resolver.hpp"
#include "strategies/cluster/declared_cluster.hpp"
#include "strategies/cluster/environment.hpp"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// How many tasks each job has. Jobs take processes in the order of their names: with {"chief", 1},
/// {"worker", 3} process 0 is the chief.
using job_counts = std::map<std::string, uint64_t>;

/// The cluster of processes at these addresses.
/// Errors: throws `failure`: failed_precondition if there are more or fewer of them than tasks.
[[nodiscard]] cluster_spec sliced(const job_counts& jobs,
                                  const std::vector<std::string>& addresses);

/// Which task a process is. Errors: throws `failure`: failed_precondition if it is none.
[[nodiscard]] task_query task_of_process(const job_counts& jobs, uint64_t process);

/// The first of these variables that is set, and not empty.
/// Errors: throws `failure`: failed_precondition, naming the launcher and the first variable.
[[nodiscard]] const char* first_variable_set(const environment_reader& environment,
                                             const std::string& launcher,
                                             std::initializer_list<const char*> names);

/// The value of that variable.
/// Errors: as `first_variable_set`.
[[nodiscard]] std::string launcher_text(const environment_reader& environment,
                                        const std::string& launcher,
                                        std::initializer_list<const char*> names);

/// The same for a whole number up to 100,000: processes, ranks and ports.
/// Errors: throws `failure`: failed_precondition also if the value is none.
[[nodiscard]] uint64_t launcher_number(const environment_reader& environment,
                                       const std::string& launcher,
                                       std::initializer_list<const char*> names);

/// The cluster as a launcher's resolver declares it.
/// @param findings Gets a problem if it throws `failure`.
[[nodiscard]] declared_cluster declared_by_launcher(const std::string& launcher,
                                                    const cluster_resolver& resolver,
                                                    std::vector<cluster_finding>& findings);

} // namespace troupe
