// SPDX-License-Identifier: Apache-2.0
// The headers that most trainers use: strategies, variables, optimizers, datasets, jobs, clusters.
#pragma once

#include "kernels/tape/tape.hpp"
#include "kernels/tensor/random.hpp"
#include "kernels/tensor/tensor.hpp"
#include "messages/errors/failure.hpp"
#include "strategies/cluster/resolve.hpp"
#include "strategies/cluster/server.hpp"
#include "strategies/data/dataset.hpp"
#include "strategies/jobs/exit_codes.hpp"
#include "strategies/jobs/training.hpp"
#include "strategies/kinds/mirrored_strategy.hpp"
#include "strategies/kinds/multi_worker_mirrored_strategy.hpp"
#include "strategies/optimizers/optimizer.hpp"
#include "strategies/optimizers/sync_replicas_optimizer.hpp"
#include "strategies/variables/metrics.hpp"
#include "tools/job/job.hpp"
