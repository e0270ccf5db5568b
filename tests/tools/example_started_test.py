# SPDX-License-Identifier: Apache-2.0
# Goal: an example's program is a job of several processes, whoever starts them.  Method: starts it as TF_CONFIG's users
# do, or by mpirun.  Usage: example_started_test.py PATH/TO/sync_replicas_cluster tf_config|mpirun
import json
import shutil
import subprocess
import sys

import job_processes

SKIPPED = 77


def by_tf_config(program):
    """What the chief of a job of four says, whose tasks are started one by one."""
    cluster = job_processes.addresses(ps=1, worker=3)
    started = []
    for kind, places in cluster.items():
        for index in range(len(places)):
            text = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
            started.append(subprocess.Popen([program], env={**job_processes.PLAIN, "TF_CONFIG": text}, text=True,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    said = [process.communicate(timeout=job_processes.TIMEOUT)[0] for process in started]
    assert not any(process.returncode for process in started), said
    return "".join(said)


def by_mpirun(program):
    """The same of four workers."""
    if not shutil.which("mpirun"):
        sys.exit(SKIPPED)
    host = f"TROUPE_HOSTS=127.0.0.1:{job_processes.free_ports(4)[0]}"
    result = subprocess.run(["mpirun", "--oversubscribe", "-np", "4", "-x", host, program], text=True,
                            env={**job_processes.PLAIN, **job_processes.OPEN_MPI}, capture_output=True,
                            timeout=job_processes.TIMEOUT)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


start, trainers = {"tf_config": (by_tf_config, 3), "mpirun": (by_mpirun, 4)}[sys.argv.pop(1)]
answer = start(job_processes.TROUPE)
expected = f"y = 3.000 x + 2.000, found by {trainers} replicas in 4 processes\n"
assert answer == expected, f"{answer!r}, not {expected!r}"
