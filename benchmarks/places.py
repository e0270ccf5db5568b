# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a benchmark stand, by number: "loopback", all of them there; "hosts", each on one of its own; "slow",
the same with cards of 4 Gbit/s."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / 'tests' / 'tools'))
import network_hosts  # noqa: E402


class Loopback(contextlib.nullcontext):
    """There our processes speak through shared memory."""

    card = 'lo'

    def __init__(self, count):
        super().__init__(self)
        self.ips = ['127.0.0.1'] * count

    def enter(self, number):
        """Moves the calling thread, or the only thread of a process, there."""

    def there(self, number):
        """What comes before a command that is to run there."""
        return []

    def addresses(self):
        """One for each process, free when it is told."""
        with contextlib.ExitStack() as taken:
            doors = [taken.enter_context(socket.create_server((host, 0))) for host in self.ips]
            return ['%s:%s' % door.getsockname() for door in doors]

    def mpirun_options(self):
        return ['--oversubscribe']


class Hosts(network_hosts.NetworkHosts):
    """Network namespaces, which take root and iproute2. Their TCP has Linux's usual congestion control, whatever the machine has: bbr's
    timers cost as much as the bytes."""

    card = 'card'

    def _build(self):
        super()._build()
        for number in range(len(self.hosts)):
            setting = 'cd /proc/sys/net/ipv4 && grep -qx cubic tcp_congestion_control || echo cubic > tcp_congestion_control'
            done = subprocess.run([*self.there(number), 'sh', '-c', setting], capture_output=True, text=True)
            if done.returncode != 0:
                raise OSError(f"{setting}: {done.stderr.strip()}")

    def addresses(self):
        return [f'{host}:2222' for host in self.ips]

    def mpirun_options(self):
        login = f'{sys.executable} {network_hosts.__file__} {self.name}'
        return ['-H', ','.join(self.ips), '--bind-to', 'none', '--mca', 'plm_rsh_agent', login,
                '--mca', 'btl_tcp_if_include', self.card,
                '--mca', 'mpi_yield_when_idle', '1']  # as if it knew that the hosts share their processors


class SlowHosts(Hosts):
    """Their cards send 4 Gbit/s, which leaves processors time to compute."""

    def _build(self):
        super()._build()
        for number in range(len(self.hosts)):
            self.set_rate(number, '4gbit')


def each_place(names, count):
    """Those that there can be, with their names; says why there can be no others."""
    for name in names:
        try:
            with {'loopback': Loopback, 'hosts': Hosts, 'slow': SlowHosts}[name](count) as place:
                yield name, place
        except OSError as reason:
            print(f'  no {name}: {reason}')


def outputs(processes):
    """What they printed, by number; ends this program if one of them has failed."""
    printed = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(f'processes ended with {[process.returncode for process in processes]}')
    return printed


def run_each(place, commands, environments=None):
    """Runs them beside each other, each in its place: `outputs`."""
    environments = environments or [{}] * len(commands)
    return outputs([subprocess.Popen([*place.there(number), *command], stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, **more})
                    for number, (command, more) in enumerate(zip(commands, environments))])


def run_torch(place, command):
    """Runs a process of torch.distributed in each place: `outputs`."""
    host, port = place.addresses()[0].split(':')
    ranks = len(place.ips)
    return run_each(place, [command] * ranks,
                    [{'MASTER_ADDR': host, 'MASTER_PORT': port, 'RANK': str(rank), 'WORLD_SIZE': str(ranks),
                      'GLOO_SOCKET_IFNAME': place.card} for rank in range(ranks)])


def run_cluster(place, command, workers, owners=0):
    """Runs a process of a job in each of so many places, the parameter servers first: `outputs`."""
    there = place.addresses()
    cluster = {'ps': there[:owners], 'worker': there[owners:owners + workers]}
    tasks = [{'type': role, 'index': index} for role, members in cluster.items() for index in range(len(members))]
    return run_each(place, [command] * len(tasks),
                    [{'TF_CONFIG': json.dumps({'cluster': cluster, 'task': task})} for task in tasks])
