# SPDX-License-Identifier: Apache-2.0
"""How much of the communication of a data-parallel step is hidden behind its backward pass, in turns; medians.

overlap.py DATA_PARALLEL_STEP   two processes of one replica each: alone beside each other, with a bucket for all gradients,
    with buckets of 4 MiB, and with sums that are made when all gradients are there (`minimize`)
TURNS, STEPS, BATCHES, PLACES in the environment: others; places as in places.py
"""

import os
import statistics
import sys

from places import each_place, run_cluster, run_each

PROGRAM = sys.argv[1]
TURNS = int(os.environ.get('TURNS', '5'))
STEPS = os.environ.get('STEPS', '12')
PROCESSES, WARM_UP = 2, 2


def milliseconds(printed):
    return 1e3 * statistics.median(float(line) for line in printed.split()[WARM_UP:])


def alone(place, batch):
    return milliseconds(run_each(place, [[PROGRAM, '1', batch, STEPS]] * PROCESSES)[0])


def together(place, batch, *mib):
    return milliseconds(''.join(run_cluster(place, [PROGRAM, '1', batch, STEPS, *mib], PROCESSES)))


for name, place in each_place(os.environ.get('PLACES', 'loopback,hosts,slow').split(','), PROCESSES):
    for batch in os.environ.get('BATCHES', '4,32,128').split(','):
        turns = [(alone(place, batch), together(place, batch, '1024'), together(place, batch, '4'), together(place, batch))
                 for _ in range(TURNS)]
        lone, late, early, unpacked = (statistics.median(column) for column in zip(*turns))
        hidden = statistics.median((turn[1] - turn[2]) / (turn[1] - turn[0]) for turn in turns)
        print(f'{name:8}, batch {batch:>4}: alone {lone:6.1f} ms, one bucket {late:6.1f}, buckets {early:6.1f}, '
              f'all at the end {unpacked:6.1f}; hidden {hidden:4.0%} of the communication', flush=True)
