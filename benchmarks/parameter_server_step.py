# SPDX-License-Identifier: Apache-2.0
# A step of 100 MB over 2 owners and 4 workers, beside what raw sockets need for the same bytes between as many processes
# in the same order: every worker gets all variables, then gives as much back.  The same step with owners that are
# replicated, and the processor time of both.  In turns, on loopback; medians.
# Usage: parameter_server_step.py PATH/TO/troupe PATH/TO/parameter_server_step
import os
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time

TROUPE, STEP = sys.argv[1:]
OWNERS, WORKERS, BYTES, ROUNDS, TURNS = 2, 4, 100_000_000, 8, 3


def processor_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def launched(holders):
    """Seconds of each step, by the clock, and processor seconds of all processes for each step."""
    command = [TROUPE, "launch", "-n", str(WORKERS), "--ps", str(OWNERS), "--", STEP, str(BYTES), str(ROUNDS),
               str(holders)]
    before = processor_seconds()
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    used = (processor_seconds() - before) / ROUNDS
    return [float(line.split()[-1]) for line in lines][1:], used  # the first step finds cold memory


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


def worker(ports, turns, done):
    connections = [socket.create_connection(("127.0.0.1", port)) for port in ports]
    into = [bytearray(BYTES // OWNERS) for _ in ports]
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


def raw():
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(OWNERS)]
    ports = [door.getsockname()[1] for door in doors]
    turns, done = [os.pipe() for _ in range(WORKERS)], os.pipe()
    for act, what in [(owner, (door,)) for door in doors] + [(worker, (ports, turn[0], done[1])) for turn in turns]:
        if os.fork() == 0:
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


ours, limit, used = {1: [], 2: []}, [], {1: [], 2: []}
for _ in range(TURNS):
    limit += raw()
    for holders in ours:
        times, seconds = launched(holders)
        ours[holders] += times
        used[holders].append(seconds)
step, twice, limit = statistics.median(ours[1]), statistics.median(ours[2]), statistics.median(limit)
print(f"{BYTES / 1e6:.0f} MB over {OWNERS} owners and {WORKERS} workers, {os.cpu_count()} processors: "
      f"step {step:.3f} s, raw sockets {limit:.3f} s, {limit / step:.2f} of what the wire allows; with owners that are "
      f"replicated {twice:.3f} s; processor time {statistics.median(used[1]):.3f} and {statistics.median(used[2]):.3f} s")
