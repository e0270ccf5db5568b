# SPDX-License-Identifier: Apache-2.0
"""Whole steps on a GPU, from a batch to updated variables, by `troupe train` and by PyTorch with CUDA graphs: one table.

gpu_job.py TROUPE PEER_SCRIPT TEXT   TORCH_PYTHON in the environment: an interpreter that has PyTorch
"""

import csv
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from torch_interpreter import interpreter_with_torch

SKIPPED = 77


@dataclass
class Job:
    name: str
    batch: int  # examples of all replicas
    steps: int
    sizes: tuple = ()  # of a GPT: layers, width, heads, context
    precision: str = 'full'  # of products

    def options(self):
        if not self.sizes:
            return []
        layers, width, heads, context = map(str, self.sizes)
        return ['--model', 'transformer', '--hidden-dropout', '0', '--layers', layers, '--width', width, '--heads', heads,
                '--context', context, '--precision', self.precision]


LARGE = (12, 768, 12, 256)
JOBS = [Job('perceptron', 256, 1000),
        Job('GPT, 4 layers of 128', 32, 300, (4, 128, 4, 64)),
        *(Job('GPT, 12 layers of 768', 16, 40, LARGE, precision) for precision in ('full', 'tf32', 'bf16'))]


def ours(troupe, text, job, replicas):
    """Milliseconds of a step, of all but the first fifth."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / 'run'
        command = [troupe, 'train', '--device', 'gpu:0', '--text', text, *job.options(), '--replicas', str(replicas),
                   '--aggregate', str(replicas), '--batch', str(job.batch // replicas), '--steps', str(job.steps),
                   '--evaluate-every', '0', '--checkpoint-every', '0', '--run-dir', run]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            print(done.stderr, end='')
            sys.exit(SKIPPED if 'there is no GPU here' in done.stderr else done.returncode)
        with (run / 'metrics.csv').open() as lines:
            seconds = [float(row['step_seconds']) for row in csv.DictReader(lines)][job.steps // 5:]
    return sum(seconds) / len(seconds) * 1e3


def theirs(python, script, text, job, replicas, way):
    command = [python, script, text, str(replicas), str(job.batch // replicas), str(job.steps), way, job.precision,
               *map(str, job.sizes)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode == SKIPPED:  # a PyTorch that sees no GPU
        return float('nan')
    done.check_returncode()
    return float(done.stdout)


def main():
    troupe, script, text = sys.argv[1:]
    python = interpreter_with_torch()
    print('milliseconds of a step; PyTorch by CUDA graphs: one of all examples, or four in streams of their own, each of a quarter')
    print(f'{"":22} {"products":>8} {"batch":>5} {"1 replica":>10} {"PyTorch":>10} {"ratio":>6} {"4 replicas":>10} {"PyTorch":>10} {"ratio":>6}')
    for job in JOBS:
        row = f'{job.name:22} {job.precision:>8} {job.batch:5}'
        for replicas, way in (1, 'whole'), (4, 'streams'):
            own = ours(troupe, text, job, replicas)
            other = theirs(python, script, text, job, replicas, way) if python else float('nan')
            row += f' {own:10.3f} {other:10.3f} {other / own:6.2f}'
        print(row, flush=True)


if __name__ == '__main__':
    main()
