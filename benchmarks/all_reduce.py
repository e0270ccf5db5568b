# SPDX-License-Identifier: Apache-2.0
"""An all-reduce between processes beside Gloo and Open MPI over TCP: all in turns, medians of rounds and turns.

all_reduce.py ALL_REDUCE [GLOO_ALL_REDUCE] [MPI_ALL_REDUCE]   an empty path: that peer is absent
TURNS, SIZES, RANKS, ALGORITHMS, PLACES in the environment: fewer, or others; algorithms as "ring:any,direct"; places are
"loopback", where ours goes by local sockets, and "hosts", each process in a network namespace of its own, which takes root
"""

import os
import statistics
import sys
import tempfile

from places import each_place, run_each

TURNS = int(os.environ.get('TURNS', '5'))
RANKS = [int(text) for text in os.environ.get('RANKS', '2,4').split(',')]
SIZES = [int(text) for text in os.environ.get(
    'SIZES', '4,1024,16384,65536,262144,1048576,10485760,104857600').split(',')]
ALGORITHMS = os.environ.get('ALGORITHMS', 'automatic').split(',')
PLACES = os.environ.get('PLACES', 'loopback,hosts').split(',')


def rounds_for(size):
    return max(10, min(500, (100 << 20) // (size + 1)))


def median_of(output):
    laps = [float(line) for line in output.split()]
    return statistics.median(laps[len(laps) // 10:])


def run_all(place, commands):
    return median_of(run_each(place, commands)[0])


def run_ours(program, place, size, algorithm):
    addresses = place.addresses()
    return run_all(place, [[program, str(rank), ','.join(addresses), str(size), str(rounds_for(size)), *algorithm.split(':')]
                           for rank in range(len(addresses))])


def run_gloo(program, place, size):
    with tempfile.TemporaryDirectory() as folder:
        return run_all(place, [[program, str(rank), str(len(place.ips)), str(size), str(rounds_for(size)), folder, host]
                               for rank, host in enumerate(place.ips)])


def run_mpi(program, place, size):
    return run_all(place, [['mpirun', '--allow-run-as-root', *place.mpirun_options(), '--mca', 'btl', 'tcp,self',
                            '-n', str(len(place.ips)), program, str(size), str(rounds_for(size))]])


def print_line(line, seconds):
    for name, value in seconds.items():
        line += f'  {name} {value * 1e6:10.1f}'
        if name in ('Gloo', 'Open MPI'):
            line += f' ({seconds[ALGORITHMS[0]] / value:.2f})'
    print(line, flush=True)


def measure(programs, place, line):
    ours, gloo, mpi = programs
    for size in SIZES:
        turns = {}
        for _ in range(TURNS):
            for algorithm in ALGORITHMS:
                turns.setdefault(algorithm, []).append(run_ours(ours, place, size, algorithm))
            if gloo:
                turns.setdefault('Gloo', []).append(run_gloo(gloo, place, size))
            if mpi:
                turns.setdefault('Open MPI', []).append(run_mpi(mpi, place, size))
        print_line(f'{line} {size:10} bytes', {name: statistics.median(values) for name, values in turns.items()})


def main():
    programs = (sys.argv[1:] + ['', ''])[:3]
    print('all_reduce between processes: microseconds, and our time over the peer\'s')
    for ranks in RANKS:
        for name, place in each_place(PLACES, ranks):
            measure(programs, place, f'  {ranks} processes on {name:8}')


main()
