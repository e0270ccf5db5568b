# SPDX-License-Identifier: Apache-2.0
"""The simulator without actors beside the usual model of a step, in turns: processor time for each gradient.

simulation_models.py SIMULATION_BENCHMARK   NUMPY_PYTHON in the environment: an interpreter that has numpy; TURNS

The model draws n times and takes the N-th smallest: that is a step of the policy cancel, and of no other. It keeps no
ledger, and no more does the simulator where a table is all that is asked for; with its ledger it is measured, too.
"""

import os
import statistics
import subprocess
import sys

SKIPPED = 77
TURNS = int(os.environ.get('TURNS', '5'))
SIZES = [(100, 20_000), (1_000, 2_000), (10_000, 200)]  # replicas, steps

MODEL = """
import sys, time
import numpy
replicas, needed, steps = map(int, sys.argv[1:])
draws = numpy.random.default_rng(1)
begin = time.process_time()
total = 0.0
for _ in range(steps):
    total += numpy.partition(draws.exponential(1.0, replicas), needed - 1)[needed - 1]
print(time.process_time() - begin, total / steps)
"""


def measure(command):
    """Seconds of processor time, and the mean step."""
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, mean_step = map(float, output.split())
    return seconds, mean_step


def main():
    program = sys.argv[1]
    python = os.environ.get('NUMPY_PYTHON', sys.executable)
    if subprocess.run([python, '-c', 'import numpy'], capture_output=True).returncode != 0:
        print(f'skipped: {python} has no numpy; NUMPY_PYTHON may name an interpreter that has it')
        sys.exit(SKIPPED)
    print(f'{"replicas":>9} {"steps":>7} {"ledger, ns":>11} {"ratio":>7} {"counts, ns":>11} {"ratio":>7} {"numpy, ns":>10}   '
          'mean step of both')
    for replicas, steps in SIZES:
        needed = replicas - replicas // 25
        sizes = [str(number) for number in (replicas, needed, steps)]
        commands = [program, 'ledger', *sizes], [program, 'counts', *sizes], [python, '-c', MODEL, *sizes]
        turns = [[measure(command) for command in commands] for _ in range(TURNS)]
        ledger, counts, model = (statistics.median(turn[which][0] for turn in turns) for which in range(3))
        gradients = replicas * steps / 1e9
        print(f'{replicas:>9} {steps:>7} {ledger / gradients:>11.1f} {ledger / model:>7.1f} {counts / gradients:>11.1f} '
              f'{counts / model:>7.1f} {model / gradients:>10.1f}   {turns[0][1][1]:.4f} and {turns[0][2][1]:.4f}')


main()
