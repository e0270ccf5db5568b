# SPDX-License-Identifier: Apache-2.0
"""An all-reduce between processes beside its peers, all in turns, medians of rounds and turns: rows of docs/performance.md.

all_reduce.py ALL_REDUCE RAW_ALL_REDUCE TORCH_SCRIPT [GLOO_ALL_REDUCE] [MPI_ALL_REDUCE]   an empty path: that peer is absent
TURNS, SIZES, RANKS, ALGORITHMS, PLACES, PEERS in the environment: fewer, or others; algorithms as "ring:any,automatic:in_place", of which
the first is compared; places are "loopback", where ours goes through shared memory, and "hosts", each process in a network namespace of its
own, which takes root; peers are "Gloo,PyTorch,Open MPI,shared memory,sockets", of which the last are bare TCP sockets whose
threads sleep between messages. TORCH_PYTHON: an interpreter that has PyTorch
"""

import os
import sys
import tempfile
from functools import partial

from laps import laps_of, medians
from places import each_place, run_each, run_torch
from torch_interpreter import interpreter_with_torch

TURNS = int(os.environ.get('TURNS', '5'))
RANKS = [int(text) for text in os.environ.get('RANKS', '2,4').split(',')]
SIZES = [int(text) for text in os.environ.get(
    'SIZES', '4,1024,16384,65536,262144,1048576,10485760,104857600').split(',')]
ALGORITHMS = os.environ.get('ALGORITHMS', 'automatic').split(',')
PLACES = os.environ.get('PLACES', 'loopback,hosts').split(',')
PEERS = os.environ.get('PEERS', 'Gloo,PyTorch,Open MPI,shared memory,sockets').split(',')


def rounds_for(size):
    return max(10, min(5000, (100 << 20) // (size + 1)))  # the first hundred of short ones are slower


def run(place, commands, environments=None):
    return laps_of(''.join(run_each(place, commands, environments)))


def run_ours(program, algorithm, place, size):
    addresses = place.addresses()
    return run(place, [[program, str(rank), ','.join(addresses), str(size), str(rounds_for(size)), *algorithm.split(':')]
                       for rank in range(len(addresses))])


def run_sockets(program, place, size):
    addresses = place.addresses()
    return run(place, [[program, str(rank), ','.join(addresses), str(size), str(rounds_for(size))]
                       for rank in range(len(addresses))])


def run_gloo(program, place, size):
    with tempfile.TemporaryDirectory() as folder:
        return run(place, [[program, str(rank), str(len(place.ips)), str(size), str(rounds_for(size)), folder, host]
                           for rank, host in enumerate(place.ips)])


def run_pytorch(python, script, place, size):
    return laps_of(''.join(run_torch(place, [python, script, str(size), str(rounds_for(size))])))


def run_mpi(program, layers, place, size):
    return run(place, [['mpirun', '--allow-run-as-root', *place.mpirun_options(), '--mca', 'btl', layers, '-n', str(len(place.ips)),
                        program, str(size), str(rounds_for(size))]])


def peers_of(sockets, torch_script, gloo, mpi):
    """What runs each, by name; those that are absent are said and left out."""
    python = interpreter_with_torch()
    found = {'Gloo': gloo and partial(run_gloo, gloo), 'PyTorch': python and partial(run_pytorch, python, torch_script),
             'Open MPI': mpi and partial(run_mpi, mpi, 'tcp,self'),
             'shared memory': mpi and partial(run_mpi, mpi, 'vader,self'), 'sockets': partial(run_sockets, sockets)}
    for name in PEERS:
        if not found[name]:
            print(f'{name} is not here, or was not when this was set up (meson setup --reconfigure): left out')
    return {name: found[name] for name in PEERS if found[name]}


def row(ranks, place, size, laps):
    """Our times, then our time over each peer's, by the clock and by the processors."""
    ours = laps[ALGORITHMS[0]]
    cells = [str(ranks), place, f'{size:,}', f'{ours.seconds * 1e6:,.0f}', f'{size / ours.seconds / 1e9:.3g}',
             f'{ours.processor * 1e6:,.0f}']
    for name, peer in laps.items():
        if name != ALGORITHMS[0]:
            cells.append(f'{ours.seconds / peer.seconds:.2f}, {ours.processor / max(peer.processor, 1e-9):.2f}')
    return f'| {" | ".join(cells)} |'


def measure(programs, place, name):
    programs = {peer: run_one for peer, run_one in programs.items() if (peer, name) != ('shared memory', 'hosts')}
    titles = ['processes', 'place', 'bytes', 'us', 'GB/s', 'processor us', *(f'/ {peer}' for peer in [*programs][1:])]
    print(f'| {" | ".join(titles)} |\n{"|---" * len(titles)}|', flush=True)
    for size in SIZES:
        turns = {peer: [] for peer in programs}
        for _ in range(TURNS):
            for peer, run_one in programs.items():
                turns[peer].append(run_one(place, size))
        print(row(len(place.ips), name, size, {peer: medians(laps) for peer, laps in turns.items()}), flush=True)


def main():
    ours, sockets, torch_script, gloo, mpi = (sys.argv[1:] + ['', ''])[:5]
    programs = {algorithm: partial(run_ours, ours, algorithm) for algorithm in ALGORITHMS}
    programs.update(peers_of(sockets, torch_script, gloo, mpi))
    for ranks in RANKS:
        for name, place in each_place(PLACES, ranks):
            measure(programs, place, name)


main()
