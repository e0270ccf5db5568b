# SPDX-License-Identifier: Apache-2.0
# What it costs to observe a job of several tasks: a step of 64 replicas in 4 processes in which nothing is computed, where
# the chief's process asks the others once a second, and where it does not.  In turns; medians, and their ratio.
# Usage: observed_step.py PATH/TO/parameter_server_step
import statistics
import sys

from places import each_place, run_cluster

STEP = sys.argv[1]
WORKERS, REPLICAS, BYTES, STEPS, WARM_UP, TURNS = 4, 64, 512, 3000, 200, 5


def median_step(place, period):
    """Seconds of a step."""
    printed = run_cluster(place, [STEP, str(BYTES), str(STEPS), "1", str(REPLICAS), str(period)], WORKERS)
    return statistics.median([float(line) for line in "".join(printed).split()][WARM_UP:])


for name, place in each_place(["loopback"], WORKERS):
    pairs = [(median_step(place, 0), median_step(place, 1)) for _ in range(TURNS)]
    off, on = (statistics.median(column) for column in zip(*pairs))
    ratio = statistics.median(on / off for off, on in pairs)
    print(f"{name}: {REPLICAS} replicas in {WORKERS} processes, milliseconds a step: not observed {1e3 * off:.3f}, "
          f"observed {1e3 * on:.3f}; ratio {ratio:.4f}")
