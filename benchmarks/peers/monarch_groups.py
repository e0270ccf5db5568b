# SPDX-License-Identifier: Apache-2.0
"""The same questions as groups.cpp asks, to actors of PyTorch's Monarch; prints a name and seconds a line.

monarch_groups.py PROCESSES
"""

import os
import signal
import statistics
import sys
import time

import torch
from monarch.actor import Actor, endpoint, this_host


class Echo(Actor):
    @endpoint
    def echo(self, value):
        return value

    @endpoint
    def pid(self):
        return os.getpid()

    @endpoint
    def wait(self):
        time.sleep(60)


def median_time(ask, rounds):
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main():
    processes = int(sys.argv[1])
    began = time.perf_counter()
    mesh = this_host().spawn_procs(per_host={'gpus': processes})
    actors = mesh.spawn('echo', Echo)
    pids = list(actors.pid.call().get().values())
    print('start', time.perf_counter() - began, flush=True)
    one = actors.slice(gpus=0)
    print('round_trip', median_time(lambda: one.echo.call_one(1).get(), 500), flush=True)
    print('gather', median_time(lambda: actors.echo.call(1).get(), 100), flush=True)
    for name, bytes_, messages in (('broadcast', 4, 100), ('broadcast_1MB', 10**6, 1)):
        value = torch.zeros(bytes_ // 4)

        def tell_all(value=value, messages=messages):
            for _ in range(messages):
                actors.echo.broadcast(value)
            actors.echo.call(1).get()

        print(name, median_time(tell_all, 10) / messages, flush=True)
    for name, bytes_, rounds in (('round_trip_1MB', 10**6, 30), ('round_trip_100MB', 10**8, 3)):
        value = torch.zeros(bytes_ // 4)
        print(name, median_time(lambda value=value: one.echo.call_one(value).get(), rounds), flush=True)
    waiting = actors.wait.call()
    time.sleep(0.5)
    began = time.perf_counter()
    os.kill(pids[processes // 2], signal.SIGKILL)
    try:
        waiting.get()
    except Exception:
        print('loss', time.perf_counter() - began, flush=True)
    os._exit(0)


main()
