# SPDX-License-Identifier: Apache-2.0
"""A data-parallel step beside PyTorch's DistributedDataParallel, which has a process for each replica, in turns; medians.

data_parallel_step.py OURS TORCH_SCRIPT REPLICAS BATCHES [ARGUMENT...]   with arguments for the script; replicas as "2x1,1x4":
    processes x replicas of each
TURNS, STEPS, REPLICAS, BATCHES, PLACES in the environment: fewer, or others; places as in all_reduce.py
"""

import os
import statistics
import sys

from places import each_place, run_cluster, run_torch
from torch_interpreter import interpreter_with_torch

TURNS = int(os.environ.get('TURNS', '3'))
PLACES = os.environ.get('PLACES', 'loopback,hosts').split(',')
STEPS = os.environ.get('STEPS', '8')


def seconds(printed):
    return statistics.median(float(line) for line in ''.join(printed).split()[2:])


def run_ours(place, program, processes, replicas, batch):
    return seconds(run_cluster(place, [program, str(replicas), batch, STEPS], processes))


def run_peer(place, command, batch, more):
    return seconds(run_torch(place, [*command, batch, STEPS, *more]))


def measure(place, line, ours, peer):
    own, other = [], []
    for _ in range(TURNS):
        own.append(ours(place))
        if peer:
            other.append(peer(place))
    line += f': {statistics.median(own) * 1e3:8.1f} ms'
    if other:
        line += (f'   DistributedDataParallel {statistics.median(other) * 1e3:8.1f} ms '
                 f'({statistics.median(other) / statistics.median(own):.2f} times ours)')
    print(line, flush=True)


def main():
    program, script, splits, batches, *more = sys.argv[1:]
    splits, batches = os.environ.get('REPLICAS', splits), os.environ.get('BATCHES', batches)
    python = interpreter_with_torch()
    if python is None:
        print('PyTorch is not installed (python3-torch): only our own step is measured')
    for split in splits.split(','):
        processes, replicas = (int(text) for text in split.split('x'))
        places = [name for name in PLACES if name == 'loopback' or processes > 1]
        for name, place in each_place(places, processes * replicas):
            for batch in batches.split(','):
                measure(place, f'{processes} processes x {replicas} replicas on {name:8}, batch {batch:>4}',
                        lambda there: run_ours(there, program, processes, replicas, batch),
                        python and (lambda there: run_peer(there, [python, script], batch, more)))


main()
