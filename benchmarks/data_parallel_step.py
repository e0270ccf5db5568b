# SPDX-License-Identifier: Apache-2.0
"""A data-parallel step beside PyTorch's DistributedDataParallel, in turns; medians.

data_parallel_step.py OURS TORCH_SCRIPT
"""

import statistics
import subprocess
import sys

TURNS = 3
STEPS = 8


def interpreter_with_torch():
    for python in (sys.executable, '/usr/bin/python3'):
        if subprocess.run([python, '-c', 'import torch'], capture_output=True).returncode == 0:
            return python
    return None


def seconds(*command):
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return statistics.median(float(line) for line in output.split()[2:])


def main():
    ours, script = sys.argv[1:3]
    python = interpreter_with_torch()
    if python is None:
        print('PyTorch is not installed (python3-torch): only our own step is measured')
    for replicas in (1, 2, 4):
        for batch in (4, 32, 128):
            own, peer = [], []
            for _ in range(TURNS):
                own.append(seconds(ours, str(replicas), str(batch), str(STEPS)))
                if python:
                    peer.append(seconds(python, script, str(replicas), str(batch), str(STEPS)))
            line = f'{replicas} replicas, batch {batch:4}: {statistics.median(own) * 1e3:9.1f} ms'
            if peer:
                line += (f'   DistributedDataParallel {statistics.median(peer) * 1e3:9.1f} ms '
                         f'({statistics.median(peer) / statistics.median(own):.2f} times ours)')
            print(line, flush=True)


main()
