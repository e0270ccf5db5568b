# SPDX-License-Identifier: Apache-2.0
"""Policy tensorflow beside TensorFlow's own SyncReplicasOptimizer, in one run: how long steps are in units of the computing
time, and what a step costs in which nothing is computed.

tensorflow_steps.py TROUPE NULL_STEP PEER_SCRIPT   TENSORFLOW_PYTHON in the environment: an interpreter that has TensorFlow
    (python3 -m venv VENV && VENV/bin/pip install tensorflow==2.21.0); UNIT: seconds that a replica computes; STEPS, TURNS
"""

import json
import os
import statistics
import subprocess
import sys

UNIT = float(os.environ.get('UNIT', '0.25'))
STEPS = int(os.environ.get('STEPS', '48'))
TURNS = int(os.environ.get('TURNS', '3'))
WARM_UP = 8
# Replicas, needed gradients, dead replicas, and by which factor others are slow.
SETTINGS = [(4, 4, 0, {}), (10, 9, 1, {}), (50, 49, 1, {}), (50, 49, 2, {}), (6, 4, 0, {0: 1.7, 1: 2.3}), (4, 6, 0, {})]
SKIPPED = 77


def interpreter_with_tensorflow():
    for python in filter(None, (os.environ.get('TENSORFLOW_PYTHON'), sys.executable)):
        said = subprocess.run([python, '-c', 'import tensorflow; print(tensorflow.__version__)'], capture_output=True, text=True)
        if said.returncode == 0:
            return python, said.stdout.strip()
    return None, None


def numbers(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f'{command[:3]} ended with {done.returncode}: {done.stderr[-2000:]}')
    return [float(line) for line in done.stdout.split()]


def simulated(troupe, replicas, needed, dead, slow):
    compute = ' * '.join(['constant(1)'] + ['slow({%d}, %g)' % each for each in slow.items()])
    done = subprocess.run(
        [troupe, 'sim', '--policy', 'tensorflow', '--replicas', str(replicas), '--aggregate', str(needed), '--dead', str(dead),
         '--compute', compute, '--steps', str(STEPS), '--warm-up', str(WARM_UP), '--json', '-'],
        check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)['step_time']['mean']


def patterns(troupe, python, script):
    print(f'mean step, in units of the computing time ({UNIT} s), {STEPS - WARM_UP} steps after {WARM_UP}')
    print(f'{"replicas":>8} {"needed":>6} {"dead":>4}  {"slow":16} {"TensorFlow":>10} {"Troupe":>7}   TensorFlow\'s last steps')
    for replicas, needed, dead, slow in SETTINGS:
        factors = ','.join(f'{number}={factor:g}' for number, factor in slow.items()) or '-'
        theirs = [each / UNIT for each in numbers(python, script, 'pattern', replicas, needed, dead, factors, UNIT, STEPS)]
        last = ' '.join(f'{each:.1f}' for each in theirs[-8:])
        print(f'{replicas:8} {needed:6} {dead:4}  {factors:16} {statistics.mean(theirs[WARM_UP:]):10.3f} '
              f'{simulated(troupe, replicas, needed, dead, slow):7.3f}   {last}', flush=True)


def costs(null_step, python, script):
    print(f'\na step in which nothing is computed, 4 replicas, momentum; medians of {TURNS} turns, milliseconds')
    for name, variables, elements, steps in [('16 scalars', 16, 1, 200), ('100 MB', 1, 25_000_000, 20)]:
        ours, theirs = [], []
        for _ in range(TURNS):
            for command, times in (([null_step], ours), ([python, script, 'step'], theirs)):
                seconds = numbers(*command, 4, variables, elements, steps)
                times.append(1e3 * statistics.median(seconds[steps // 5:]))
        own, other = statistics.median(ours), statistics.median(theirs)
        print(f'{name:12} Troupe {own:8.2f}   TensorFlow {other:8.2f}   {other / own:.1f} times ours', flush=True)


def main():
    troupe, null_step, script = sys.argv[1:4]
    python, version = interpreter_with_tensorflow()
    if python is None:
        print('skipped: no TensorFlow here; TENSORFLOW_PYTHON may name an interpreter that has it')
        sys.exit(SKIPPED)
    print(f'beside TensorFlow {version}')
    patterns(troupe, python, script)
    costs(null_step, python, script)


if __name__ == '__main__':
    main()
