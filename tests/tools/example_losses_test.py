# SPDX-License-Identifier: Apache-2.0
# Goal: an example's program answers a loss as the job does (docs/failures.md), not as a wrong command, which a launcher
# would not start again.
# Method: its chief cannot go on, since nobody reads what it says, when somebody is killed.
# Usage: example_losses_test.py PATH/TO/PROGRAM CLUSTER LOST ARGUMENTS, as in: multi_worker worker=3 worker:1
import fcntl
import json
import os
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import job_processes

LOST_PEER = 4
LATE = 5
SAID_BEFORE_THE_END = 60  # bytes: more than its first line, less than all of them


def full_pipe():
    """A pipe that has room for the first line of a program, but not for its last."""
    reader, writer = os.pipe()
    room = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.write(writer, b"." * (room - SAID_BEFORE_THE_END))
    return reader, writer, room - SAID_BEFORE_THE_END


def bytes_in(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


program, (counts, lost, *arguments) = job_processes.TROUPE, sys.argv[1:]
cluster = job_processes.addresses(**{kind: int(count) for kind, count in (one.split("=") for one in counts.split(","))})
reader, writer, filled = full_pipe()
tasks = {}
for kind, places in cluster.items():
    for index in range(len(places)):
        name = f"{kind}:{index}"
        text = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        tasks[name] = subprocess.Popen(["stdbuf", "-oL", program, *arguments], stderr=subprocess.PIPE, text=True,
                                       env={**job_processes.PLAIN, "TF_CONFIG": text},
                                       stdout=writer if name == "worker:0" else subprocess.DEVNULL)
try:
    end = time.monotonic() + job_processes.TIMEOUT
    while bytes_in(reader) == filled:
        assert time.monotonic() < end and tasks["worker:0"].poll() is None, "nobody ever says a word"
        time.sleep(0.01)
    tasks[lost].kill()
    tasks[lost].wait()
    os.close(writer)
    while os.read(reader, 65536):  # until worker 0 has ended
        pass
    said = {name: process.communicate(timeout=job_processes.TIMEOUT)[1] for name, process in tasks.items()}
finally:
    for process in tasks.values():
        process.kill()
codes = {name: process.returncode for name, process in tasks.items()}
assert codes.pop(lost) == -signal.SIGKILL and codes["worker:0"] == LOST_PEER, (codes, said)
for name, code in codes.items():  # a task that serves ends well when no task is left to serve
    never_met = code == LATE and re.search(f"still waiting for .* at {lost} ", said[name])
    assert code in {0, LOST_PEER} or never_met, (codes, said)
