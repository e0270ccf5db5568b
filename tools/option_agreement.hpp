// SPDX-License-Identifier: Apache-2.0
// Whether processes that run replicas together were told the same.
#pragma once

#include "strategies/strategy.hpp"
#include "tools/text_corpus.hpp"
#include "tools/train_options.hpp"

namespace troupe {

/// Processes that draw other batches, or make other steps, would train what nobody asked for, and
/// never notice. So each tells the others its options, and what its text is; where files lie may
/// differ. All processes of the strategy have to make the call; one that is alone says nothing.
/// Errors: throws `failure` with failed_precondition: whose option differs from the first
/// process's, and how; as `cross_replica_context::exchanged`.
void check_same_options(strategy& strategy, const train_options& options,
                        const text_corpus& corpus);

} // namespace troupe
