# SPDX-License-Identifier: Apache-2.0
"""A group of actors over processes of this machine, beside PyTorch's Monarch in the same run; medians of turns.

groups.py GROUPS PEER_SCRIPT   MONARCH_PYTHON in the environment: an interpreter that has Monarch
    (python3 -m venv VENV && VENV/bin/pip install torchmonarch==0.7.0 torch); PROCESSES: how many are asked, as in 8,32; TURNS
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time

from places import Loopback

PROCESSES = [int(count) for count in os.environ.get('PROCESSES', '32').split(',')]
TURNS = int(os.environ.get('TURNS', '3'))
ROWS = [('round_trip', 'round trip with one', 1e6, 'us'), ('gather', 'ask all and gather', 1e3, 'ms'),
        ('broadcast', 'tell all, one of 100 in a row', 1e3, 'ms'), ('broadcast_1MB', '1 MB to all', 1e3, 'ms'),
        ('round_trip_1MB', '1 MB there and back', 1e3, 'ms'), ('round_trip_100MB', '100 MB there and back', 1e3, 'ms'),
        ('loss', 'until a killed process is told of', 1e3, 'ms'), ('start', 'start of all processes', 1, 's')]


def ours(program, processes):
    cluster = {'worker': Loopback(processes + 1).addresses()}
    began = time.time()
    tasks = []
    for index in range(processes + 1):
        config = json.dumps({'cluster': cluster, 'task': {'type': 'worker', 'index': index}})
        tasks.append(subprocess.Popen(['stdbuf', '-oL', program], env={**os.environ, 'TF_CONFIG': config},
                                      stdout=subprocess.PIPE if index == 0 else subprocess.DEVNULL, text=True))
    result = {}
    try:
        for line in tasks[0].stdout:
            name, *values = line.split()
            if name == 'ready':
                result['start'] = time.time() - began
            elif name == 'lost':
                result['loss'] = float(values[1]) - killed
            else:
                result[name] = float(values[0])
            if name == 'round_trip_100MB':
                time.sleep(0.2)  # the question is with all members
                killed = time.time()
                tasks[processes // 2].send_signal(signal.SIGKILL)
    finally:
        for each in tasks:
            each.kill()
            each.wait()
    return result


def theirs(python, script, processes):
    done = subprocess.run([python, script, str(processes)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    result = {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines() if ' ' in line)}
    if not result:
        sys.exit(f'{script} ended with {done.returncode}: {done.stderr[-2000:]}')
    return result


def show(measured):
    for key, what, scale, unit in ROWS:
        line = f'{what:34}'
        for name, turns in measured.items():
            values = [each[key] for each in turns if key in each]
            if values:
                line += f'  {name} {statistics.median(values) * scale:10.3f} {unit}'
        print(line)


def main():
    program, script = sys.argv[1:]
    print(subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True,
                         env={name: value for name, value in os.environ.items() if name != 'TF_CONFIG'}).stdout)
    python = os.environ.get('MONARCH_PYTHON')
    for processes in PROCESSES:
        measured = {'Troupe': [], 'Monarch': []}
        for _ in range(TURNS):
            measured['Troupe'].append(ours(program, processes))
            if python:
                measured['Monarch'].append(theirs(python, script, processes))
        print(f'{processes} processes of this machine, {TURNS} turns' + ('' if python else '; no MONARCH_PYTHON: without its peer'))
        show(measured)


main()
