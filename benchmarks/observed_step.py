# SPDX-License-Identifier: Apache-2.0
# What it costs to observe a job of several tasks: a step of 64 replicas in 4 processes in which nothing is computed, where
# the chief's process asks the others once a second, where it asks them a hundred times as often, and where it does not: one
# look a second costs less than runs differ, so that its share is a hundredth of what the many cost.  In turns; medians.
# Usage: observed_step.py PATH/TO/parameter_server_step
import statistics
import sys

from places import each_place, run_cluster

STEP = sys.argv[1]
WORKERS, REPLICAS, BYTES, STEPS, WARM_UP, TURNS, LOOKS = 4, 64, 512, 1500, 200, 5, 100


def median_step(place, period):
    """Seconds of a step."""
    printed = run_cluster(place, [STEP, str(BYTES), str(STEPS), "1", str(REPLICAS), str(period)], WORKERS)
    return statistics.median([float(line) for line in "".join(printed).split()][WARM_UP:])


for name, place in each_place(["loopback"], WORKERS):
    turns = [[median_step(place, period) for period in (0, 1, 1 / LOOKS)] for _ in range(TURNS)]
    off, on, often = (1e3 * statistics.median(column) for column in zip(*turns))
    share = (statistics.median(turn[2] / turn[0] for turn in turns) - 1) / LOOKS
    print(f"{name}: {REPLICAS} replicas in {WORKERS} processes, milliseconds a step: not observed {off:.3f}, once a second "
          f"{on:.3f}, {LOOKS} times a second {often:.3f}; one look a second takes {share:.3%} of a step's time")
