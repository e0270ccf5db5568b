# SPDX-License-Identifier: Apache-2.0
"""The main job, `troupe train` with all of its replicas needed, beside PyTorch in one process and as DistributedDataParallel
in several; in turns, medians.

language_job.py TROUPE PEER_SCRIPT MODEL   TORCH_PYTHON in the environment: an interpreter that has PyTorch; TURNS, STEPS
"""

import csv
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from places import Loopback, run_torch
from torch_interpreter import interpreter_with_torch

TURNS = int(os.environ.get('TURNS', '5'))
SKIPPED = 77


@dataclass
class Job:
    options: list
    replicas: int
    batch: int  # examples of a replica
    guesses: int  # bytes of an example that are learned
    steps: int
    processes: tuple  # of DistributedDataParallel, which share the examples of all replicas


JOBS = {'perceptron': Job([], 4, 64, 1, 1500, (4,)),
        'transformer': Job(['--model', 'transformer', '--layers', '4', '--hidden-dropout', '0'], 4, 8, 64, 50, (2, 4))}


def median_step(seconds):
    return statistics.median(seconds[len(seconds) // 5:])


def ours(troupe, job):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / 'run'
        subprocess.run([troupe, 'train', *job.options, '--replicas', str(job.replicas), '--aggregate', str(job.replicas),
                        '--batch', str(job.batch), '--steps', str(job.steps), '--evaluate-every', '0',
                        '--checkpoint-every', '0', '--run-dir', run], check=True, capture_output=True)
        with (run / 'metrics.csv').open() as lines:
            return median_step([float(row['step_seconds']) for row in csv.DictReader(lines)])


def one_process(python, script, job):
    done = subprocess.run([python, script, str(job.replicas * job.batch), str(job.steps), str(len(os.sched_getaffinity(0)))],
                          check=True, stdout=subprocess.PIPE, text=True)
    return median_step([float(line) for line in done.stdout.split()])


def distributed(python, script, job, processes):
    batch = job.replicas * job.batch // processes
    printed = run_torch(Loopback(processes), [python, script, str(batch), str(job.steps), '1'])
    return median_step([float(line) for line in printed[0].split()])


def main():
    troupe, script, model = sys.argv[1:4]
    job = JOBS[model]
    job.steps = int(os.environ.get('STEPS', job.steps))
    python = interpreter_with_torch()
    if python is None:
        print('skipped: no PyTorch here; TORCH_PYTHON may name an interpreter that has it')
        sys.exit(SKIPPED)
    version = subprocess.run([python, '-c', 'import torch; print(torch.__version__)'], check=True, stdout=subprocess.PIPE,
                             text=True).stdout.strip()
    print(f'PyTorch {version}, {model}, {job.replicas} replicas of {job.batch}, {job.steps} steps, {TURNS} turns; median step, milliseconds')
    ways = {'one process': lambda: one_process(python, script, job)}
    for count in job.processes:
        ways[f'{count} processes'] = lambda count=count: distributed(python, script, job, count)
    own, others = [], {way: [] for way in ways}
    for turn in range(TURNS):
        own.append(ours(troupe, job))
        for way, measure in ways.items():
            others[way].append(measure())
        print(f'turn {turn + 1}: {own[-1] * 1e3:7.2f}; ' + ', '.join(f'{way} {times[-1] * 1e3:7.2f}' for way, times in others.items()),
              flush=True)
    speed = job.replicas * job.batch * job.guesses / statistics.median(own)
    print(f'ours: {speed:.0f} bytes learned a second')
    for way, times in others.items():
        ratio = statistics.median(other / mine for other, mine in zip(times, own))
        print(f'PyTorch, {way:12}: {ratio:.2f} times ours')


if __name__ == '__main__':
    main()
