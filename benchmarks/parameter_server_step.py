# SPDX-License-Identifier: Apache-2.0
# A step of 100 MB over 2 owners and 4 workers, beside what raw sockets need for the same bytes between as many processes
# in the same order: every worker gets all variables, then gives as much back.  The same step with owners that are
# replicated, and the processor time of both.  In turns; medians.  On loopback, where ours goes through shared memory, and with
# each process in a network namespace of its own, which takes root.
# Usage: parameter_server_step.py PATH/TO/parameter_server_step
import os
import resource
import socket
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from places import each_place, run_cluster

STEP = sys.argv[1]
OWNERS, WORKERS, BYTES, ROUNDS, TURNS = 2, 4, 100_000_000, 8, 3


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def launched(place, holders):
    """Seconds of each step, by the clock, and processor seconds of all processes for each step."""
    before = processor_seconds()
    printed = run_cluster(place, [STEP, str(BYTES), str(ROUNDS), str(holders)], WORKERS, OWNERS)
    used = (processor_seconds() - before) / ROUNDS
    return [float(line) for line in "".join(printed).split()][1:], used  # the first step finds cold memory


def receive(connection, into):
    view = memoryview(into)
    while view:
        view = view[connection.recv_into(view):]


def owner(door):
    share = bytearray(BYTES // OWNERS)

    def serve(connection):
        into = bytearray(BYTES // OWNERS)
        for _ in range(ROUNDS):
            receive(connection, bytearray(1))
            connection.sendall(share)
            receive(connection, into)

    threads = [threading.Thread(target=serve, args=(door.accept()[0],)) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def worker(addresses, turns, done):
    connections = [socket.create_connection(address) for address in addresses]
    into = [bytearray(BYTES // OWNERS) for _ in addresses]
    for _ in range(ROUNDS):
        os.read(turns, 1)

        def exchange(connection, share):
            connection.sendall(b"x")
            receive(connection, share)
            connection.sendall(share)

        threads = [threading.Thread(target=exchange, args=each) for each in zip(connections, into)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.write(done, b"x")


def open_door(place, number):
    place.enter(number)
    return socket.create_server((place.ips[number], 0))


def raw(place):
    with ThreadPoolExecutor(1) as elsewhere:  # who enters a host does not come back
        doors = list(elsewhere.map(lambda number: open_door(place, number), range(OWNERS)))
    addresses = [door.getsockname() for door in doors]
    turns, done = [os.pipe() for _ in range(WORKERS)], os.pipe()
    acts = [(owner, (door,)) for door in doors] + [(worker, (addresses, turn[0], done[1])) for turn in turns]
    for number, (act, what) in enumerate(acts):
        if os.fork() == 0:
            place.enter(number)
            act(*what)
            os._exit(0)
    times = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        for turn in turns:
            os.write(turn[1], b"x")
        for _ in turns:
            os.read(done[0], 1)
        times.append(time.monotonic() - began)
    for _ in range(OWNERS + WORKERS):
        os.wait()
    return times[1:]


def measure(place, name):
    ours, limit, used = {1: [], 2: []}, [], {1: [], 2: []}
    for _ in range(TURNS):
        limit += raw(place)
        for holders in ours:
            times, seconds = launched(place, holders)
            ours[holders] += times
            used[holders].append(seconds)
    step, twice, wire = (statistics.median(times) for times in (ours[1], ours[2], limit))
    print(f"{name}: step {step:.3f} s, raw sockets {wire:.3f} s, {wire / step:.2f} of what the wire allows; with owners that "
          f"are replicated {twice:.3f} s; processor time {statistics.median(used[1]):.3f} and "
          f"{statistics.median(used[2]):.3f} s", flush=True)


print(f"{BYTES / 1e6:.0f} MB over {OWNERS} owners and {WORKERS} workers, {os.cpu_count()} processors")
for name, place in each_place(["loopback", "hosts"], OWNERS + WORKERS):
    measure(place, name)
