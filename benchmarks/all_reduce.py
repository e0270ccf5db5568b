# SPDX-License-Identifier: Apache-2.0
"""An all-reduce between processes beside Gloo and Open MPI over TCP: all in turns, medians of rounds and turns.

all_reduce.py ALL_REDUCE [GLOO_ALL_REDUCE] [MPI_ALL_REDUCE]   an empty path: that peer is absent
TURNS, SIZES, RANKS, ALGORITHMS, PLACES in the environment: fewer, or others; algorithms as "ring:any,direct"; places are
"loopback", where ours goes by local sockets, and "hosts", each process in a network namespace of its own, which takes root
"""

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / 'tests' / 'tools'))
import network_hosts  # noqa: E402

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


class Loopback(contextlib.nullcontext):
    def __init__(self, count):
        super().__init__(self)
        self.ips = ['127.0.0.1'] * count

    def addresses(self):
        first = free_ports(len(self.ips))
        return [f'{host}:{first + rank}' for rank, host in enumerate(self.ips)]

    @staticmethod
    def there(_):
        return []

    @staticmethod
    def mpirun():
        return ['mpirun', '--allow-run-as-root', '--oversubscribe']


class Hosts(network_hosts.NetworkHosts):
    def addresses(self):
        return [f'{host}:2222' for host in self.ips]

    def mpirun(self):
        login = f'{sys.executable} {network_hosts.__file__} {self.name}'
        return [*self.there(0), 'mpirun', '--allow-run-as-root', '-H', ','.join(self.ips), '--bind-to', 'none',
                '--mca', 'mpi_yield_when_idle', '1',  # as if it knew that the hosts share their processors
                '--mca', 'btl_tcp_if_include', 'card', '--mca', 'plm_rsh_agent', login]


def run_all(commands):
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [process.communicate()[0] for process in processes]
    return median_of(outputs[0])


def run_ours(program, place, size, algorithm):
    addresses = place.addresses()
    return run_all([[*place.there(rank), program, str(rank), ','.join(addresses), str(size), str(rounds_for(size)),
                     *algorithm.split(':')] for rank in range(len(addresses))])


def run_gloo(program, place, size):
    with tempfile.TemporaryDirectory() as folder:
        return run_all([[*place.there(rank), program, str(rank), str(len(place.ips)), str(size), str(rounds_for(size)),
                         folder, host] for rank, host in enumerate(place.ips)])


def run_mpi(program, place, size):
    return run_all([[*place.mpirun(), '--mca', 'btl', 'tcp,self', '-n', str(len(place.ips)), program, str(size),
                     str(rounds_for(size))]])


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
    for name in PLACES:
        for ranks in RANKS:
            try:
                with {'loopback': Loopback, 'hosts': Hosts}[name](ranks) as place:
                    measure(programs, place, f'  {ranks} processes on {name:8}')
            except OSError as reason:
                print(f'  no {name}: {reason}')


main()
