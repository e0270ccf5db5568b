# SPDX-License-Identifier: Apache-2.0
"""Meetings of replicas beside Gloo and Open MPI: all in turns, medians of rounds and of turns.

collectives.py COLLECTIVES [GLOO_ALL_REDUCE] [MPI_ALL_REDUCE]   an empty path: that peer is absent
"""

import statistics
import subprocess
import sys
import tempfile

from laps import laps_of

TURNS = 5
SIZES = [4, 1024, 65536, 1 << 20, 10 << 20, 100 << 20]


def rounds_for(size):
    return max(5, min(2000, (200 << 20) // (size + 1)))


def run(*command):
    return laps_of(subprocess.run(command, check=True, capture_output=True, text=True).stdout).seconds


def run_gloo(program, ranks, size):
    with tempfile.TemporaryDirectory() as folder:
        peers = [subprocess.Popen([program, str(rank), str(ranks), str(size), str(rounds_for(size)), folder,
                                   '127.0.0.1'],
                                  stdout=subprocess.PIPE, text=True) for rank in range(ranks)]
        outputs = [peer.communicate()[0] for peer in peers]
    return laps_of(outputs[0]).seconds


def run_mpi(program, ranks, size):
    return run('mpirun', '--allow-run-as-root', '--oversubscribe', '-n', str(ranks), program, str(size),
               str(rounds_for(size)))


def merge_calls(ours):
    print('merge_call: microseconds of a rendezvous, and for each replica')
    for replicas in (2, 4, 64, 1000):
        turns = [run(ours, 'merge_call', str(replicas), str(max(50, 20000 // replicas))) for _ in range(TURNS)]
        seconds = statistics.median(turns)
        print(f'  {replicas:5} replicas {seconds * 1e6:10.2f} {seconds * 1e6 / replicas:8.3f}')


def all_reduces(ours, gloo, mpi):
    print('all_reduce: microseconds, and how many times as long the peers take')
    for ranks in (2, 4):
        for size in SIZES:
            turns = {'ours': [], 'gloo': [], 'mpi': []}
            for _ in range(TURNS):
                turns['ours'].append(run(ours, 'all_reduce', str(ranks), str(size), str(rounds_for(size))))
                if gloo:
                    turns['gloo'].append(run_gloo(gloo, ranks, size))
                if mpi:
                    turns['mpi'].append(run_mpi(mpi, ranks, size))
            seconds = {name: statistics.median(values) for name, values in turns.items() if values}
            line = f'  {ranks} replicas {size:10} bytes {seconds["ours"] * 1e6:12.2f}'
            for peer, name in (('gloo', 'Gloo'), ('mpi', 'Open MPI')):
                if peer in seconds:
                    line += f'   {name} {seconds[peer] * 1e6:12.2f} ({seconds[peer] / seconds["ours"]:.2f})'
            print(line, flush=True)


def main():
    ours, gloo, mpi = (sys.argv[1:] + ['', ''])[:3]
    merge_calls(ours)
    all_reduces(ours, gloo, mpi)


main()
