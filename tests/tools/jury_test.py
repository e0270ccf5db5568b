# SPDX-License-Identifier: Apache-2.0
# Goal: actors of one's own talk between processes, and a process that is killed is missed by name, not waited for.
# Method: the example jury_cluster; its chief, since its output is not read, cannot go on when a juror is killed.
# Usage: jury_test.py PATH/TO/jury_cluster
import fcntl
import json
import os
import signal
import subprocess

import job_processes

cluster = job_processes.addresses(worker=3)
reader, writer = os.pipe()
fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)  # room for a third of the lines
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
    said = [process.communicate(timeout=job_processes.PATIENCE)[1] for process in tasks]
finally:
    for process in tasks:
        process.kill()
codes = [process.returncode for process in tasks]
assert codes == [0, 0, -signal.SIGKILL], (codes, said)
assert first.endswith("said by 3 of 3 jurors\n"), (first, said)
assert len(rest) == 299 and rest[-1].endswith("said by 2 of 3 jurors\n"), (rest[-1:], said)
assert rest[-1].startswith("step 300: y = 3.0"), rest[-1]
