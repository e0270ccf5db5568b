# SPDX-License-Identifier: Apache-2.0
"""A data-parallel step beside PyTorch's DistributedDataParallel, which has a process for each replica, in turns; medians.

data_parallel_step.py OURS TORCH_SCRIPT
TURNS, REPLICAS, BATCHES, PLACES in the environment: fewer, or others; replicas as "2x1,1x4": processes x replicas of each;
places as in all_reduce.py
"""

import os
import statistics
import sys

from places import each_place, run_cluster, run_each
from torch_interpreter import interpreter_with_torch

TURNS = int(os.environ.get('TURNS', '3'))
SPLITS = os.environ.get('REPLICAS', '1x1,1x2,2x1,1x4,4x1').split(',')
BATCHES = [int(text) for text in os.environ.get('BATCHES', '4,32,128').split(',')]
PLACES = os.environ.get('PLACES', 'loopback,hosts').split(',')
STEPS = 8


def seconds(printed):
    return statistics.median(float(line) for line in ''.join(printed).split()[2:])


def run_ours(place, program, processes, replicas, batch):
    return seconds(run_cluster(place, [program, str(replicas), str(batch), str(STEPS)], processes))


def run_peer(place, python, script, batch):
    host, port = place.addresses()[0].split(':')
    ranks = len(place.ips)
    return seconds(run_each(place, [[python, script, str(batch), str(STEPS)]] * ranks,
                            [{'MASTER_ADDR': host, 'MASTER_PORT': port, 'RANK': str(rank), 'WORLD_SIZE': str(ranks),
                              'GLOO_SOCKET_IFNAME': place.card} for rank in range(ranks)]))


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
    program, script = sys.argv[1:3]
    python = interpreter_with_torch()
    if python is None:
        print('PyTorch is not installed (python3-torch): only our own step is measured')
    for split in SPLITS:
        processes, replicas = (int(text) for text in split.split('x'))
        places = [name for name in PLACES if name == 'loopback' or processes > 1]
        for name, place in each_place(places, processes * replicas):
            for batch in BATCHES:
                measure(place, f'{processes} processes x {replicas} replicas on {name:8}, batch {batch:4}',
                        lambda there: run_ours(there, program, processes, replicas, batch),
                        python and (lambda there: run_peer(there, python, script, batch)))


main()
