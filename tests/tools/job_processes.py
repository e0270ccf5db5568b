# SPDX-License-Identifier: Apache-2.0
# Jobs of real processes on this machine, for the tests that do something to them.  Whoever imports this is started as
# SOME_test.py PATH/TO/troupe.
import contextlib
import hashlib
import http.client
import io
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import time
import types
import unittest

from own_folder import TextTest, checkpoint

# A signal that the starter of the tests ignores (nohup, a shell's "&") would be ignored by all processes that they start.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)

TROUPE = os.path.abspath(sys.argv.pop(1))
SMALL = "--text text --batch 8 --context 4 --embedding 4 --hidden 16 --evaluate-every 0 --replicas 4".split()
ALL_FOUR = SMALL + "--policy latest_token --aggregate 4".split()
A_BACKUP = SMALL + "--policy latest_token --aggregate 3".split()
FOR_EVER = "--steps 100000000".split()
WATCHED = "--metrics-port 0".split()  # lines about steps may be five seconds apart, figures are there at once
LAUNCHERS = ("TF_CONFIG", "TROUPE_", "SLURM_", "OMPI_", "PMIX_", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "LOCAL_",
             "MASTER_", "GROUP_", "ROLE_", "NCCL_SOCKET_IFNAME")
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Seconds for what takes a few, on a machine that does much else; under a sanitizer everything takes ten times as long.
TIMEOUT = 1000 if "TSAN_OPTIONS" in os.environ else 100
CASE_SECONDS = 5 * TIMEOUT // 2  # the longest time in which no case ends; every test as a whole may take longer
CASES_AT_ONCE = 1 if "TSAN_OPTIONS" in os.environ else 4
PORTS_OF_A_BLOCK = 32
blocks = []  # of ports, which are ours until this process ends


def free_ports(count):
    """Ports in a row that no program listens on, below the range that connections take theirs from.
    No other caller of this function gets them."""
    assert count <= PORTS_OF_A_BLOCK, count
    while True:
        first = random.randrange(20000, 32768 - PORTS_OF_A_BLOCK, PORTS_OF_A_BLOCK)
        block = socket.socket(socket.AF_UNIX)
        try:
            block.bind(f"\0troupe-test-ports-{first}")
            for port in range(first, first + count):
                with socket.create_server(("127.0.0.1", port)):
                    pass
            blocks.append(block)
            return list(range(first, first + count))
        except OSError:
            block.close()


def addresses(**counts):
    """A cluster on this machine: {"ps": ["127.0.0.1:20001"], ...}."""
    ports = iter(free_ports(sum(counts.values())))
    return {kind: [f"127.0.0.1:{next(ports)}" for _ in range(count)] for kind, count in counts.items()}


def tensors(path):
    """What the tensors of a safetensors file hold, by name: digests, which a failure can print."""
    return {name: hashlib.sha256(content).hexdigest() for name, content in checkpoint(path)[0].items()}


def process_of(job_id, task):
    """The number of the process that is a task of a job; nothing if there is none now."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            lines = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            is_train = b"train" in (folder / "cmdline").read_bytes().split(b"\0")[1:2]
        except OSError:
            continue
        variables = dict(line.split("=", 1) for line in lines if "=" in line)
        if not is_train or variables.get("TROUPE_JOB_ID") != job_id:
            continue
        who = json.loads(variables["TF_CONFIG"])["task"]
        if f"{who['type']}:{who['index']}" == task:
            return int(folder.name)
    return None


class Process:
    """One process of a job, and what it writes."""

    def __init__(self, test, name, command, environment):
        self.test, self.name = test, name
        self.errors_path = test.folder / f"{name.replace(':', '-')}-{len(test.processes)}.err"
        with open(self.errors_path, "wb") as errors:
            self.process = subprocess.Popen(command, cwd=test.folder, env=environment, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=errors)
        test.processes.append(self)

    def errors(self):
        return self.errors_path.read_text(errors="replace")

    def until(self, look, what, timeout=TIMEOUT):
        """Waits until it has done what `look` looks for, and returns what that finds."""
        end = time.monotonic() + timeout
        while True:
            has_ended = self.process.poll() is not None  # asked first: what it does last counts, too
            if found := look():
                return found
            self.test.assertFalse(has_ended, f"{self.name} ended before: {what}\n{self.test.story()}")
            self.test.assertLess(time.monotonic(), end, f"{self.name} never came to: {what}\n{self.test.story()}")
            time.sleep(0.01)

    def says(self, pattern, timeout=TIMEOUT, times=1):
        """Waits until a line on its standard error is like that, or so many are, and returns the last."""
        line = re.compile(f"^.*{pattern}.*$", re.MULTILINE)
        return self.until(lambda: [*line.finditer(self.errors())][times - 1 : times], pattern, timeout)[0][0]

    def figures(self, task=""):
        """Numbers of its /metrics, or of the /metrics of a task that it launched, by name; none if there is no answer now."""
        served = re.findall(rf"^{re.escape(task)}metrics   http://([^/]+)/metrics", self.errors(), re.MULTILINE)
        if not served:
            return {}
        connection = http.client.HTTPConnection(served[-1], timeout=TIMEOUT)
        try:
            connection.request("GET", "/metrics")
            lines = connection.getresponse().read().decode().splitlines()
        except (OSError, http.client.HTTPException):
            return {}
        finally:
            connection.close()
        return {name: float(number) for name, number in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))}

    def makes_steps(self, count, task="", live=None):
        """Waits until its WATCHED job, or that of a task that it launched, has made so many more steps, with so many replicas."""

        def step():
            figures = self.figures(task)
            return figures.get("troupe_global_step") if live in (None, figures.get("troupe_live_replicas")) else None

        what = "steps" if live is None else f"steps of {live} replicas"
        first = self.until(step, what)
        self.until(lambda: (step() or 0) >= first + count, f"{count} more {what}")

    def send(self, number):
        self.process.send_signal(number)

    def ends(self, code, *patterns, timeout=TIMEOUT):
        """Waits for its end: its code, and the last line that it said, which has all the patterns."""
        try:
            self.process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.test.fail(f"{self.name} does not end\n{self.test.story()}")
        self.test.assertEqual(self.process.returncode, code, f"{self.name}\n{self.test.story()}")
        said = [line for line in self.errors().splitlines() if line.startswith("troupe train: ")]
        line = said[-1] if said else ""
        for pattern in patterns:
            self.test.assertRegex(line, pattern, f"{self.name}\n{self.test.story()}")
        return line


class Job(TextTest):
    def setUp(self):
        super().setUp()
        self.processes = []

    def tearDown(self):
        for one in self.processes:
            if one.process.poll() is None:
                one.process.send_signal(signal.SIGCONT)
                one.process.kill()
                one.process.wait()

    def story(self):
        """What everybody said, for who has to find out what went wrong."""
        return "\n".join(f"---- {one.name}: {one.process.poll()}\n{one.errors()[-3000:]}" for one in self.processes)

    def start(self, cluster, task, *options, environment={}):
        kind, index = task.split(":")
        config = {"cluster": cluster, "task": {"type": kind, "index": int(index)}}
        more = {"TF_CONFIG": json.dumps(config), **environment}
        return Process(self, task, [TROUPE, "train", "--run-dir", "run", *options], {**PLAIN, **more})

    def start_all(self, cluster, *options):
        """All tasks of a cluster, by name."""
        names = [f"{kind}:{index}" for kind, hosts in cluster.items() for index in range(len(hosts))]
        return {name: self.start(cluster, name, *options) for name in names}

    def trained(self, run="run"):
        """The tensors that a job has left."""
        saved = sorted((self.folder / run / "checkpoints").glob("checkpoint-*.safetensors"),
                       key=lambda path: int(path.stem.split("-")[1]))
        self.assertTrue(saved, self.story())
        return saved[-1].stem, tensors(saved[-1])

    def alone(self, *options):
        """What a job of one process comes to."""
        Process(self, "alone", [TROUPE, "train", *options, "--run-dir", "alone"], PLAIN).ends(0)
        return self.trained("alone")


def run_case(case):
    """Whether a case passed, and what there is to say of it."""
    random.seed()  # else all cases draw the same
    result, said, began = unittest.TestResult(), io.StringIO(), time.monotonic()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        case.run(result)
    what = "passed" if result.wasSuccessful() else "FAILED"
    reasons = [f"skipped: {reason}\n" for _, reason in result.skipped] + [text for _, text in result.errors + result.failures]
    lines = f"{what} {time.monotonic() - began:5.1f} s {case.id()}\n{said.getvalue()}{''.join(reasons)}"
    return result.wasSuccessful(), lines


class SideBySide:
    """A runner for unittest.main: cases that wait more than they compute run side by side, each in a process of its own."""

    def cases(self, suite):
        for one in suite:
            yield from self.cases(one) if isinstance(one, unittest.TestSuite) else [one]

    def run(self, suite):
        cases, passed = [*self.cases(suite)], []
        with multiprocessing.get_context("fork").Pool(CASES_AT_ONCE, maxtasksperchild=1) as pool:
            results = pool.imap_unordered(run_case, cases)
            try:
                for _ in cases:
                    has_passed, said = results.next(CASE_SECONDS)
                    passed.append(has_passed)
                    print(said, end="", file=sys.stderr, flush=True)
            except multiprocessing.TimeoutError:  # the pool never says that a process with a case has died
                print(f"no case ended for {CASE_SECONDS} s: one hangs, or its process has died", file=sys.stderr)
        print(f"{len(passed)} of {len(cases)} cases ended, {passed.count(False)} failed", file=sys.stderr)
        is_success = len(cases) > 0 and len(passed) == len(cases) and all(passed)
        return types.SimpleNamespace(wasSuccessful=lambda: is_success, testsRun=len(passed), skipped=[])
