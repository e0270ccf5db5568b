// SPDX-License-Identifier: Apache-2.0
// A job of several processes, in one that is not the chief's.
#pragma once

#include "strategies/jobs/training.hpp"

namespace troupe {

/// Puts on stage what stands in this process, and waits until the chief's says how the job ended.
/// @pre The strategy has a placement that does not lead.
/// @returns How the job ended for all processes: its step, and why; it knows no more of it.
/// Errors: in the report: as everywhere; unavailable, if the process of the chief is gone, naming
/// it and the last step that was heard of. Throws `failure`, as `placement::see`.
[[nodiscard]] job_report follow(strategy& strategy, const sync_replicas_optimizer& optimizer,
                                const session_function& session, const training_options& options);

} // namespace troupe
