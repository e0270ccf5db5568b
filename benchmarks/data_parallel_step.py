# SPDX-License-Identifier: Apache-2.0
"""A data-parallel step beside PyTorch's DistributedDataParallel, which has a process for each replica, in turns; medians.

data_parallel_step.py TROUPE OURS TORCH_SCRIPT
TURNS, REPLICAS, BATCHES in the environment: fewer, or others; replicas as "2x1,1x4": processes x replicas of each
"""

import os
import statistics
import subprocess
import sys

from torch_interpreter import interpreter_with_torch

TURNS = int(os.environ.get('TURNS', '3'))
SPLITS = os.environ.get('REPLICAS', '1x1,1x2,2x1,1x4,4x1').split(',')
BATCHES = [int(text) for text in os.environ.get('BATCHES', '4,32,128').split(',')]
STEPS = 8


def seconds(*command):
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return statistics.median(float(line.split()[-1]) for line in output.splitlines()[2:])


def main():
    troupe, ours, script = sys.argv[1:4]
    python = interpreter_with_torch()
    if python is None:
        print('PyTorch is not installed (python3-torch): only our own step is measured')
    for split in SPLITS:
        processes, replicas = (int(text) for text in split.split('x'))
        launched = [troupe, 'launch', '-n', str(processes), '--'] if processes > 1 else []
        for batch in BATCHES:
            own, peer = [], []
            for _ in range(TURNS):
                own.append(seconds(*launched, ours, str(replicas), str(batch), str(STEPS)))
                if python:
                    peer.append(seconds(python, script, str(processes * replicas), str(batch), str(STEPS)))
            line = f'{processes} processes x {replicas} replicas, batch {batch:4}: {statistics.median(own) * 1e3:8.1f} ms'
            if peer:
                line += (f'   DistributedDataParallel {statistics.median(peer) * 1e3:8.1f} ms '
                         f'({statistics.median(peer) / statistics.median(own):.2f} times ours)')
            print(line, flush=True)


main()
