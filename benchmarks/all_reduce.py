# SPDX-License-Identifier: Apache-2.0
"""An all-reduce between processes beside Gloo and Open MPI over TCP: all in turns, medians of rounds and turns.

all_reduce.py ALL_REDUCE [GLOO_ALL_REDUCE] [MPI_ALL_REDUCE]   an empty path: that peer is absent
TURNS, SIZES, RANKS, ALGORITHMS in the environment: fewer, or others; algorithms as "ring:any,direct"
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile

TURNS = int(os.environ.get('TURNS', '5'))
RANKS = [int(text) for text in os.environ.get('RANKS', '2,4').split(',')]
SIZES = [int(text) for text in os.environ.get(
    'SIZES', '4,1024,16384,65536,262144,1048576,10485760,104857600').split(',')]
ALGORITHMS = os.environ.get('ALGORITHMS', 'automatic').split(',')


def rounds_for(size):
    return max(10, min(500, (100 << 20) // (size + 1)))


def median_of(output):
    laps = [float(line) for line in output.split()]
    return statistics.median(laps[len(laps) // 10:])


def free_ports(count):
    taken = [socket.socket() for _ in range(count)]
    first = 0
    while not first:
        taken[0].close()
        taken[0] = socket.socket()
        taken[0].bind(('127.0.0.1', 0))
        base = taken[0].getsockname()[1]
        try:
            for offset in range(1, count):
                taken[offset].close()
                taken[offset] = socket.socket()
                taken[offset].bind(('127.0.0.1', base + offset))
            first = base
        except OSError:
            pass
    for one in taken:
        one.close()
    return first


def run_all(commands):
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate()[0] for process in processes]
    return median_of(outputs[0])


def run_ours(program, ranks, size, algorithm):
    port = free_ports(ranks)
    options = [part for part in algorithm.split(':')]
    return run_all([[program, str(rank), str(ranks), str(size), str(rounds_for(size)), str(port)] + options
                    for rank in range(ranks)])


def run_gloo(program, ranks, size):
    with tempfile.TemporaryDirectory() as folder:
        return run_all([[program, str(rank), str(ranks), str(size), str(rounds_for(size)), folder]
                        for rank in range(ranks)])


def run_mpi(program, ranks, size):
    return run_all([['mpirun', '--allow-run-as-root', '--oversubscribe', '--mca', 'btl', 'tcp,self',
                     '-n', str(ranks), program, str(size), str(rounds_for(size))]])


def print_line(line, seconds):
    for name, value in seconds.items():
        line += f'  {name} {value * 1e6:10.1f}'
        if name in ('Gloo', 'Open MPI'):
            line += f' ({seconds[ALGORITHMS[0]] / value:.2f})'
    print(line, flush=True)


def main():
    ours, gloo, mpi = (sys.argv[1:] + ['', ''])[:3]
    print('all_reduce between processes over loopback: microseconds, and our time over the peer\'s')
    for ranks in RANKS:
        for size in SIZES:
            turns = {}
            for _ in range(TURNS):
                for algorithm in ALGORITHMS:
                    turns.setdefault(algorithm, []).append(run_ours(ours, ranks, size, algorithm))
                if gloo:
                    turns.setdefault('Gloo', []).append(run_gloo(gloo, ranks, size))
                if mpi:
                    turns.setdefault('Open MPI', []).append(run_mpi(mpi, ranks, size))
            print_line(f'  {ranks} processes {size:10} bytes',
                       {name: statistics.median(values) for name, values in turns.items()})


main()
