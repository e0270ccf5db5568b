# SPDX-License-Identifier: Apache-2.0
# Goal: a group of actors in several processes goes on without a process that is killed: it is missed by name, not waited
# for. Method: examples that print a line a round. The chief, since its output is not read, cannot go on meanwhile.
# Usage: lost_member_test.py PROGRAM ROUNDS END-OF-LINE-WITH-ALL END-OF-LINE-WITHOUT-ONE
import fcntl
import json
import os
import signal
import subprocess
import sys

import job_processes

rounds, with_all, without_one = int(sys.argv[1]), sys.argv[2] + "\n", sys.argv[3] + "\n"
cluster = job_processes.addresses(worker=3)
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # room for a part of the lines
tasks = []
for index in range(3):
    text = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
    tasks.append(subprocess.Popen(["stdbuf", "-oL", job_processes.TROUPE], stderr=subprocess.PIPE, text=True,
                                  env={**job_processes.PLAIN, "TF_CONFIG": text},
                                  stdout=writer if index == 0 else subprocess.DEVNULL))
os.close(writer)
try:
    with os.fdopen(reader) as lines:
        first = lines.readline()
        tasks[2].kill()
        tasks[2].wait()
        rest = lines.readlines()
    said = [process.communicate(timeout=job_processes.TIMEOUT)[1] for process in tasks]
finally:
    for process in tasks:
        process.kill()
codes = [process.returncode for process in tasks]
assert codes == [0, 0, -signal.SIGKILL], (codes, said)
assert first.endswith(with_all), (first, said)
assert len(rest) == rounds - 1 and rest[-1].endswith(without_one), (rest[-1:], said)
