# SPDX-License-Identifier: Apache-2.0
# Goal: `troupe launch` starts tasks that know each other, shows what they write, and ends them together.
# Method: real processes, most of them shells.  Usage: launch_test.py PATH/TO/troupe
import collections
import contextlib
import json
import os
import pathlib
import pty
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import unittest

from job_processes import TROUPE, SideBySide
from own_folder import FolderTest

PLAIN = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "TF_CONFIG")}
# What a shell script has to say first to know who it is: $me is "worker:2".
WHO = """me=$(printf %s "$TF_CONFIG" | sed 's/.*"type":"\\([a-z]*\\)","index":\\([0-9]*\\).*/\\1:\\2/'); """


def is_there(process):
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Launch(FolderTest):
    def command(self, options, script):
        return [TROUPE, "launch", *options.split(), "--", "sh", "-c", WHO + script]

    def launch(self, options, script, environment=PLAIN):
        return subprocess.run(self.command(options, script), cwd=self.folder, env=environment, text=True,
                              capture_output=True, timeout=100)

    def begin(self, options, script, **more):
        """A job that goes on."""
        more = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.Popen(self.command(options, script), cwd=self.folder, env=PLAIN, text=True, **more)

    def files(self, pattern, count):
        """Waits for so many files."""
        end = time.monotonic() + 60
        while len(found := sorted(self.folder.glob(pattern))) < count:
            self.assertLess(time.monotonic(), end, f"{len(found)} of {count} {pattern}")
            time.sleep(0.01)
        return found

    def numbers(self, pattern, count):
        """Waits for so many files that hold a number each."""
        end = time.monotonic() + 60
        found = self.files(pattern, count)
        while not all(path.read_text().strip() for path in found):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        return [int(path.read_text()) for path in found]

    def wait_until_gone(self, processes):
        end = time.monotonic() + 30
        while any(is_there(process) for process in processes):
            self.assertLess(time.monotonic(), end, processes)
            time.sleep(0.01)

    # ---- what tasks are told ----

    def test_each_task_knows_itself_and_all_others(self):
        job = self.launch("-n 3 --ps 2 --chief --job-id run-7", 'echo "$TROUPE_JOB_ID $TF_CONFIG"')
        self.assertEqual((job.returncode, job.stderr), (0, ""))
        clusters, names = set(), set()
        for line in job.stdout.splitlines():
            name, job_id, config = line.split(" ", 2)
            config = json.loads(config)
            self.assertEqual(job_id, "run-7")
            self.assertEqual(name, "[%s:%d]" % (config["task"]["type"], config["task"]["index"]))
            names.add(name)
            clusters.add(json.dumps(config["cluster"]))
        self.assertEqual(len(names), 6)
        self.assertEqual(len(clusters), 1)
        cluster = json.loads(clusters.pop())
        self.assertEqual({kind: len(tasks) for kind, tasks in cluster.items()}, {"chief": 1, "worker": 3, "ps": 2})
        addresses = [address for tasks in cluster.values() for address in tasks]
        self.assertEqual(len(set(addresses)), 6)
        for address in addresses:
            host, port = address.split(":")
            self.assertEqual(host, "127.0.0.1")
            with socket.socket() as listener:
                listener.bind((host, int(port)))

    def test_a_job_without_a_chief_lists_none_and_draws_its_id(self):
        ids = set()
        for _ in range(2):
            job = self.launch("-n 2", 'echo "$TF_CONFIG" >&2; echo "$TROUPE_JOB_ID"')
            self.assertNotIn("chief", job.stderr)
            ids |= {line.split()[1] for line in job.stdout.splitlines()}
        self.assertEqual(len(ids), 2)

    def test_processors_are_shared_unless_the_environment_decides(self):
        usable = len(os.sched_getaffinity(0))
        job = self.launch("-n 2", 'echo "$OMP_NUM_THREADS"')
        self.assertEqual({line.split()[1] for line in job.stdout.splitlines()}, {str(max(1, usable // 2))})
        job = self.launch("-n 2", 'echo "$OMP_NUM_THREADS"', PLAIN | {"OMP_NUM_THREADS": "7"})
        self.assertEqual({line.split()[1] for line in job.stdout.splitlines()}, {"7"})

    def test_arguments_reach_the_program_as_they_are(self):
        words = ["a b", "--", "-n", "", "*", "$HOME"]
        job = subprocess.run([TROUPE, "launch", "-n", "1", "--", "printf", "<%s>", *words], text=True,
                             capture_output=True, timeout=100)
        self.assertEqual(job.stdout, "[worker:0] " + "".join(f"<{word}>" for word in words) + "\n")

    def test_a_task_has_nothing_to_read(self):
        self.assertEqual(self.launch("-n 2", "cat").returncode, 0)

    # ---- output ----

    def test_lines_are_whole_and_none_is_lost(self):
        script = """i=0; while [ $i -lt 500 ]; do
            printf 'out %s %s' $me $i; printf ' end\\n'; echo "err $me $i end" >&2; i=$((i + 1))
            done; printf last"""
        both = self.folder / "both"
        with open(both, "w") as file:
            job = self.begin("-n 8 --log-dir logs/here", script, stdout=file, stderr=file)
            self.assertEqual(job.wait(100), 0)
        seen = collections.defaultdict(list)
        for line in both.read_text().splitlines():
            match = re.fullmatch(r"\[(worker:\d)\] (?:(out|err) \1 (\d+) end|last)", line)
            self.assertTrue(match, line)
            seen[match[1], match[2] or "last"].append(int(match[3] or 0))
        self.assertEqual(len(seen), 24)
        for (name, kind), numbers in seen.items():
            self.assertEqual(numbers, [0] if kind == "last" else list(range(500)))
            log = (self.folder / "logs/here" / (name.replace(":", "-") + ".log")).read_text()
            self.assertEqual([line for line in log.splitlines() if line.startswith("out")],
                             [f"out {name} {number} end" for number in range(500)])
            self.assertIn("last", log)
            self.assertNotIn("[worker", log)

    def test_errors_go_where_errors_go(self):
        job = self.launch("-n 1", "echo out; echo err >&2")
        self.assertEqual((job.stdout, job.stderr), ("[worker:0] out\n", "[worker:0] err\n"))

    def test_any_bytes_and_lines_of_any_length_come_through(self):
        job = subprocess.run(self.command("-n 1 --log-dir logs", r"""
            head -c 200000 /dev/zero | tr '\0' x; printf '\n\377\000\r\n'"""), cwd=self.folder, capture_output=True,
                             timeout=100)
        self.assertEqual(job.stdout.replace(b"\n[worker:0] ", b"", 3).removeprefix(b"[worker:0] "),
                         b"x" * 200000 + b"\n[worker:0] \xff\0\r\n")
        self.assertEqual((self.folder / "logs/worker-0.log").read_bytes(), b"x" * 200000 + b"\n\xff\0\r\n")

    def test_colours_are_for_terminals(self):
        self.assertNotIn("\x1b", self.launch("-n 2", "echo hello").stdout)
        for environment, coloured in [({}, True), ({"NO_COLOR": "1"}, False)]:
            ours, theirs = pty.openpty()
            job = subprocess.run(self.command("-n 2 --fold never", "echo hello"), env=PLAIN | {"TERM": "xterm"} | environment,
                                 stdout=theirs, stderr=subprocess.DEVNULL, timeout=100)
            os.close(theirs)
            shown = os.read(ours, 4096)
            os.close(ours)
            self.assertEqual(job.returncode, 0)
            self.assertEqual(b"\x1b[36m[worker:0]\x1b[0m hello" in shown, coloured, shown)

    # Tasks write while the launcher is stopped, so that it finds all that they wrote at the same time.
    AT_ONCE = "touch ready-$me; while [ ! -e go ]; do sleep 0.02; done; %s; touch done-$me"

    def read_at_once(self, job, count):
        """Has the tasks of AT_ONCE write, and the launcher read."""
        self.files("ready-*", count)
        job.send_signal(signal.SIGSTOP)
        (self.folder / "go").touch()
        self.files("done-*", count)
        job.send_signal(signal.SIGCONT)

    def test_a_line_of_several_tasks_is_printed_once(self):
        job = self.begin("-n 4 --ps 1 --fold always --log-dir logs", self.AT_ONCE % """
            echo begin $me; echo all; [ $me = worker:1 ] || echo most; echo end $me; echo error >&2; printf last""")
        self.read_at_once(job, 5)
        out, err = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 0, err)
        seen = collections.defaultdict(list)  # by task: what it said, in that order
        for line in out.splitlines():
            match = re.fullmatch(r"\[(worker:\S+)?( ?)(ps:0)?\] (?:(\d) tasks say: )?(.*)", line)
            self.assertTrue(match, line)
            names = []
            for part in (match[1] or "worker:").removeprefix("worker:").split(","):
                first, _, last = part.partition("-")
                names += [f"worker:{number}" for number in range(int(first), int(last or first) + 1)] if part else []
            names += [match[3]] if match[3] else []
            self.assertEqual(len(names), int(match[4] or 1), line)
            for name in names:
                seen[name].append(match[5])
        self.assertEqual(len(seen), 5)
        for name, said in seen.items():
            most = [] if name == "worker:1" else ["most"]
            self.assertEqual(said, [f"begin {name}", "all", *most, f"end {name}", "last"])
            log = (self.folder / "logs" / (name.replace(":", "-") + ".log")).read_text()
            self.assertEqual(sorted(log.splitlines()), sorted([*said, "error"]))
        self.assertIn("[worker:0-3 ps:0] 5 tasks say: all\n", out)
        self.assertIn("[worker:0-3 ps:0] 5 tasks say: error\n", err)

    def test_lines_are_folded_on_a_terminal_alone_unless_it_is_said(self):
        for option, terminal, folded in [("", True, True), ("", False, False), ("--fold never", True, False),
                                         ("--fold always", False, True)]:
            with self.subTest(option=option, terminal=terminal):
                ours, theirs = pty.openpty() if terminal else os.pipe()
                job = self.begin(f"-n 3 {option}", self.AT_ONCE % "echo hello", stdout=theirs, stderr=subprocess.DEVNULL)
                os.close(theirs)
                self.read_at_once(job, 3)
                self.assertEqual(job.wait(60), 0)
                shown = os.read(ours, 4096).decode().split("\n")[:-1]
                os.close(ours)
                self.assertEqual(sum(int((re.search(r"(\d) tasks say", line) or "01")[1]) for line in shown), 3, shown)
                self.assertEqual(len(shown) < 3, folded, shown)
                for path in self.folder.iterdir():
                    path.unlink()

    def test_a_line_of_the_launcher_comes_after_the_lines_that_it_is_about(self):
        job = self.launch("-n 3 --fold always --log-dir logs", """
            [ $me = worker:1 ] || exec sleep 100
            echo why >&2; while ! grep -q why logs/worker-1.log; do sleep 0.01; done; exit 5""")
        self.assertEqual(job.returncode, 5)
        self.assertRegex(job.stderr, "^\\[worker:1\\] why\ntroupe launch: worker:1 failed: ")

    def test_a_reader_that_pauses_stops_nothing_but_the_output(self):
        job = self.begin("-n 2", """trap 'exit 3' TERM; seq 2000; touch ready-$me; seq 2001 400000; touch done-$me
            sleep 100 & wait""")
        self.files("ready-*", 2)
        time.sleep(0.5)
        self.assertEqual(list(self.folder.glob("done-*")), [])  # so tasks wait for the reader
        job.send_signal(signal.SIGTERM)
        out, _ = job.communicate(timeout=100)
        self.assertEqual(job.returncode, 3)
        for name in ["worker:0", "worker:1"]:
            lines = [line.split()[1] for line in out.splitlines() if name in line]
            self.assertGreater(len(lines), 1000)  # the last one may be cut: its writer was ended
            self.assertEqual(lines[:-1], [*map(str, range(1, len(lines)))])

    def test_all_is_written_however_late_it_is_read(self):
        job = self.begin("-n 2 --grace 0.2", "seq 300000")
        time.sleep(2)
        out, _ = job.communicate(timeout=100)
        self.assertEqual(job.returncode, 0)
        self.assertEqual(len(out.splitlines()), 600000)

    def test_a_job_whose_reader_has_gone_ends(self):
        job = self.begin("-n 2", "trap 'exit 9' TERM; while :; do echo hello; sleep 0.01; done")
        silent = {"worker:0", "worker:1"}
        while silent:  # who has not come so far knows of no trap
            line = job.stdout.readline()
            silent -= {name for name in silent if name in line}
        job.stdout.close()
        self.assertEqual(job.wait(60), 9)
        self.assertIn("SIGPIPE", job.stderr.read())
        job.stderr.close()

    def test_a_reader_that_goes_while_a_job_ends_kills_no_task(self):
        job = self.begin("-n 1", "trap 'sleep 1; echo gone; sleep 1; exit 5' TERM; touch ready; while :; do sleep 0.02; done")
        self.files("ready", 1)
        job.stdout.close()
        job.send_signal(signal.SIGTERM)
        self.assertEqual(job.wait(60), 5)
        job.stderr.close()

    # ---- output of other hosts ----

    def collector(self, options, script, **more):
        """A launcher that collects, and where it does."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            where = "127.0.0.1:%d" % probe.getsockname()[1]
        job = self.begin(f"--task chief --collect-output {where} {options}", script, **more)
        self.connection(where)[0].close()  # so it listens
        return job, where

    def connection(self, where, greeting=None):
        """A connection with a launcher that collects, and its answer."""
        end = time.monotonic() + 60
        while True:
            try:
                other = socket.create_connection(where.split(":"), timeout=60)
                break
            except ConnectionRefusedError:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.02)
        if greeting is not None:
            other.sendall(greeting)
            return other, other.makefile("rb").readline()
        return other, None

    def test_lines_of_other_launchers_come_to_one(self):
        until_over = "while [ $(ls over-* | wc -l) -lt 3 ]; do sleep 0.02; done 2>/dev/null"
        with open(self.folder / "out", "w") as file:  # a pipe that is not read would hold all of them up
            chief, where = self.collector("--job-id run-7", until_over, stdout=file)
        script = "me=%s; seq -f \"$me %%.0f\" 5000; echo error of $me >&2; printf last; touch over-$me"
        jobs = [self.begin(f"--task {name} --job-id run-7 --log-dir logs --send-output {where}", script % name)
                for name in ["worker:0", "worker:1", "ps:0"]]
        for job in jobs:
            self.assertEqual(job.communicate(timeout=100)[0], "")
            self.assertEqual(job.returncode, 0)
        _, err = chief.communicate(timeout=100)
        self.assertEqual(chief.returncode, 0, err)
        out = (self.folder / "out").read_text()
        for name in ["worker:0", "worker:1", "ps:0"]:
            said = [line for line in out.splitlines() if line.startswith(f"[{name}] ")]
            self.assertEqual(said, [*(f"[{name}] {name} {number}" for number in range(1, 5001)), f"[{name}] last"])
            log = (self.folder / "logs" / (name.replace(":", "-") + ".log")).read_text()
            self.assertEqual(len(log.splitlines()), 5002)
        self.assertEqual(sorted(err.splitlines()), [f"[{name}] error of {name}" for name in ["ps:0", "worker:0", "worker:1"]])

    def test_a_launcher_that_sends_waits_for_the_one_that_collects(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            where = "127.0.0.1:%d" % probe.getsockname()[1]
        worker = self.begin(f"--task worker:3 --send-output {where}", "echo early; while [ ! -e over ]; do sleep 0.02; done")
        self.assertEqual(worker.stderr.readline(),
                         f"troupe launch: no launcher at {where} yet (Connection refused); lines wait for it\n")
        chief = self.begin(f"--task chief --collect-output {where}", "while [ ! -e over ]; do sleep 0.02; done")
        self.assertEqual(chief.stdout.readline(), "[worker:3] early\n")
        (self.folder / "over").touch()
        for job in [worker, chief]:
            self.assertEqual(job.communicate(timeout=60), ("", ""))
            self.assertEqual(job.returncode, 0)

    def test_a_lost_collector_is_told_once_and_lines_are_printed_here(self):
        chief, where = self.collector("", "exec sleep 100")
        worker = self.begin(f"--task worker:1 --send-output {where}", """echo before; touch ready
            while [ ! -e lost ]; do sleep 0.02; done; echo after; while [ ! -e over ]; do sleep 0.02; done; echo last""")
        self.assertEqual(chief.stdout.readline(), "[worker:1] before\n")
        chief.kill()
        chief.communicate(timeout=60)
        self.assertRegex(worker.stderr.readline(), rf"^troupe launch: no connection to the launcher at {where} \(.*\); what "
                                                   r"worker:1 writes is printed here\n$")
        (self.folder / "lost").touch()
        self.assertEqual(worker.stdout.readline(), "[worker:1] after\n")
        (self.folder / "over").touch()
        self.assertEqual(worker.communicate(timeout=60), ("[worker:1] last\n", ""))
        self.assertEqual(worker.returncode, 0)

    def test_lines_that_are_not_taken_are_dropped_and_counted(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            where = "127.0.0.1:%d" % listener.getsockname()[1]
            job = self.begin(f"--task worker:1 --send-output {where}", """while [ ! -e go ]; do sleep 0.02; done
                yes 0123456789012345678901234567890123456789 | head -2000000; touch done; exec sleep 100""")
            taker, _ = listener.accept()
            stream = taker.makefile("rb")
            self.assertEqual(stream.readline(), b"troupe-output 1 worker:1 \n")
            taker.sendall(b"ok\n")
            (self.folder / "go").touch()
            self.files("done", 1)  # so the task did not wait
            job.terminate()
            lines = stream.read().splitlines()
            taker.close()
        job.communicate(timeout=60)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)
        said = lines.count(b"1 0123456789012345678901234567890123456789")
        dropped = sum(int(line.split()[1]) for line in lines if line.startswith(b"dropped "))
        self.assertEqual(said + sum(line.startswith(b"dropped ") for line in lines), len(lines))
        self.assertGreater(dropped, 0)
        self.assertEqual(said + dropped, 2000000)

    def test_strangers_are_not_listened_to(self):
        chief, where = self.collector("--job-id run-7", "while [ ! -e over ]; do sleep 0.02; done")
        for bytes in [b"GET / HTTP/1.1\r\n\r\n", b"\n", b"\xff\0" * 70000, b"troupe-output 1 worker:x run-7\n"]:
            stranger, _ = self.connection(where)
            with contextlib.suppress(ConnectionError):
                stranger.sendall(bytes)
                self.assertEqual(stranger.recv(64), b"")
            stranger.close()
        other, answer = self.connection(where, b"troupe-output 1 worker:4 run-8\n1 hello\n")
        self.assertEqual(answer, b"refused: worker:4 is of another job: give both launchers the same --job-id\n")
        other.close()
        self.assertIn("worker:4 is of another job: give both launchers the same --job-id\n", chief.stderr.readline())
        good, answer = self.connection(where, b"troupe-output 1 worker:5 run-7\n")
        self.assertEqual(answer, b"ok\n")
        good.sendall(b"1 \x1b[2Jcleared\n2 a\0b\ndropped 3\n1 " + b"x" * 65536 + b"\n3 what\n1 more\n")
        self.assertEqual(chief.stdout.readline(), "[worker:5] ?[2Jcleared\n")
        self.assertEqual(chief.stderr.readline(), "[worker:5] a?b\n")
        self.assertEqual(chief.stderr.readline(),
                         "troupe launch: 3 lines of worker:5 dropped: the connection between the launchers was too slow\n")
        self.assertEqual(chief.stdout.readline(), "[worker:5] " + "x" * 65536 + "\n")
        self.assertRegex(chief.stderr.readline(), "^troupe launch: the launcher of worker:5 at 127.0.0.1:.* does not speak as one does")
        good.close()
        long, _ = self.connection(where, b"troupe-output 1 worker:6 run-7\n")
        with contextlib.suppress(ConnectionError):
            long.sendall(b"1 " + b"x" * 200000)
        long.close()
        self.assertRegex(chief.stderr.readline(), "^troupe launch: the launcher of worker:6 at .* does not speak as one does")
        (self.folder / "over").touch()
        self.assertEqual(chief.communicate(timeout=60), ("", ""))
        self.assertEqual(chief.returncode, 0)

    def test_a_collecting_launcher_does_not_wait_for_ever_for_others(self):
        chief, where = self.collector("--grace 0.5", "while [ ! -e over ]; do sleep 0.02; done")
        silent, answer = self.connection(where, b"troupe-output 1 worker:5 \n")
        self.assertEqual(answer, b"ok\n")
        (self.folder / "over").touch()
        out, err = chief.communicate(timeout=60)
        self.assertEqual(out, "")
        self.assertRegex(err, "^troupe launch: cuts off the launcher of worker:5 at 127.0.0.1:[0-9]+, which did not end in "
                         "time; what worker:5 still writes is lost\n$")
        self.assertEqual(chief.returncode, 0)
        silent.close()

    def test_a_task_has_none_of_the_launchers_descriptors(self):
        chief, where = self.collector("", "ls -l /proc/$$/fd > descriptors; while [ ! -e over ]; do sleep 0.02; done")
        self.files("descriptors", 1)
        (self.folder / "over").touch()
        chief.communicate(timeout=60)
        self.assertNotIn("socket:", (self.folder / "descriptors").read_text())

    # ---- ends ----

    def test_the_first_failure_is_named_and_ends_the_others(self):
        job = self.launch("-n 4 --log-dir logs", """
            trap 'echo asked; exit 7' TERM; touch ready-$me
            if [ $me = worker:2 ]; then
              while [ $(ls ready-* | wc -l) -lt 4 ]; do sleep 0.01; done
              sleep 0.3; seq 20 >&2; printf 'no such thing' >&2; exit 5
            fi
            sleep 100 & wait""")
        self.assertEqual(job.returncode, 5)
        self.assertEqual(job.stdout.count("asked"), 3)
        self.assertIn("troupe launch: worker:2 failed: exit code 5; ending 3 other tasks\n", job.stderr)
        self.assertRegex(job.stderr, r"troupe launch: worker:2 failed first: exit code 5 after \d+\.\d s; 3 others were "
                         "ended; the last it wrote to standard error:\n(  \\| 1[2-9]\n){8}  \\| 20\n  \\| no such thing\n$")
        self.assertIn("asked", (self.folder / "logs/worker-0.log").read_text())

    def test_a_job_ends_with_its_last_task_that_fails(self):
        job = self.launch("-n 1 --grace 1000", "exec >&- 2>&-; sleep 0.3; exit 3")
        self.assertEqual((job.returncode, job.stderr.count("\n")), (3, 1), job.stderr)

    def test_a_worker_that_is_spared_ends_nothing(self):
        script = """[ $me = worker:1 ] && kill -KILL $$
            while [ ! -e told ]; do sleep 0.02; done; exit ${code:-0}"""
        job = self.begin("-n 3 --spare-workers", script)
        line = job.stderr.readline()
        self.assertEqual(line, "troupe launch: worker:1 failed: signal 9 (SIGKILL); it is up to the others whether they go "
                               "on without it\n")
        (self.folder / "told").touch()
        self.assertEqual(job.communicate(timeout=60), ("", ""))
        self.assertEqual(job.returncode, 0)

    def test_a_job_that_says_so_may_lose_workers(self):
        tell = """import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'spare worker', '\\0' + os.environ['TROUPE_LAUNCHER'][1:])"""
        (self.folder / "tell.py").write_text(tell)
        job = self.launch("-n 3", f"""if [ $me = worker:0 ]; then
              {sys.executable} tell.py && touch told; while [ ! -e lost ]; do sleep 0.02; done; exit 0; fi
            while [ ! -e told ]; do sleep 0.02; done; if [ $me = worker:1 ]; then touch lost; kill -KILL $$; fi""")
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertRegex(job.stderr, "^troupe launch: worker:1 failed: .*whether they go on without it\n$")

    def test_a_job_with_restarts_outlasts_kills(self):
        # Workers that can be killed never end by themselves until worker:0 has seen six of their lives.
        job = self.launch("-n 3 --restart 1000 --kill-every 0.2s --kill-seed 7", """
            if [ $me = worker:0 ]; then
              while [ $(ls life-* | wc -l) -lt 6 ]; do sleep 0.02; done 2>/dev/null; touch over; exit 0; fi
            touch life-$me-$$; while [ ! -e over ]; do sleep 0.02; done""")
        self.assertEqual((job.returncode, job.stdout), (0, ""), job.stderr)
        first, *lines = job.stderr.splitlines()
        self.assertEqual(first, "troupe launch: kills a task every 0.2 s: one of worker:1-2, with --kill-seed 7")
        killed = [line.split()[3] for line in lines if " kills " in line]
        self.assertGreaterEqual(len(killed), 4)
        self.assertLessEqual(set(killed), {"worker:1", "worker:2"})
        for name in killed:
            self.assertIn(f"troupe launch: kills {name} (SIGKILL), as --kill-every asks", lines)
            self.assertTrue(any(f"{name} failed: signal 9 (SIGKILL); it is started again" in line for line in lines), lines)

    def test_a_kill_is_a_failure_where_the_job_may_lose_nothing(self):
        job = self.launch("-n 2 --ps 1 --kill-every 0.3 --kill-tasks ps", "exec sleep 100")
        self.assertEqual(job.returncode, 128 + signal.SIGKILL)
        self.assertIn("kills ps:0 (SIGKILL), as --kill-every asks\n", job.stderr)
        self.assertRegex(job.stderr, "ps:0 failed first: signal 9 .SIGKILL., as --kill-every asks after .*; 2 others were ended")

    def test_a_task_that_dies_of_a_signal_counts_as_a_shell_has_it(self):
        job = self.launch("-n 2", "[ $me = worker:1 ] || exec sleep 100; kill -SEGV $$")
        self.assertEqual(job.returncode, 128 + signal.SIGSEGV)
        self.assertIn("worker:1 failed first: signal 11 (SIGSEGV) after", job.stderr)
        self.assertTrue(job.stderr.endswith("1 other was ended\n"), job.stderr)

    def test_a_task_that_does_not_end_is_killed_with_all_it_has_started(self):
        started = time.monotonic()
        job = self.launch("-n 3 --grace 0.5", """
            trap '' TERM; sh -c 'trap "" TERM; echo $$ >child-$PPID; sleep 100' & touch ready-$me
            if [ $me = worker:0 ]; then
              while [ $(ls ready-* child-* | wc -l) -lt 6 ]; do sleep 0.01; done; exit 6; fi
            wait""")
        self.assertEqual(job.returncode, 6)
        self.assertLess(time.monotonic() - started, 60)
        self.assertIn("2 others were ended, 2 of them by SIGKILL after 0.5 s", job.stderr)
        self.wait_until_gone(self.numbers("child-*", 3))

    def test_processes_that_a_task_leaves_behind_cannot_hold_the_job(self):
        job = self.launch("-n 2 --grace 0.5", "sleep 100 & echo $! >child-$me")
        self.assertEqual((job.returncode, job.stderr), (0, ""))
        self.wait_until_gone(self.numbers("child-*", 2))

    def test_processes_that_a_task_leaves_behind_may_write_their_last_lines(self):
        job = self.launch("-n 1", "(sleep 0.3; echo late) &")
        self.assertEqual((job.returncode, job.stdout), (0, "[worker:0] late\n"))

    def test_parameter_servers_end_when_no_task_needs_them(self):
        job = self.launch("-n 2 --ps 2 --grace 0.3", "case $me in ps:*) exec sleep 100;; esac")
        self.assertEqual((job.returncode, job.stderr), (0, ""))
        job = self.launch("-n 2 --ps 1", "case $me in ps:*) exit 4;; esac; exec sleep 100")
        self.assertEqual(job.returncode, 4)

    def test_when_the_job_is_over_a_stopped_task_is_killed_and_a_running_one_is_named(self):
        job = self.launch("-n 3 --ps 1 --grace 0.3 --restart 1", """
            case $me in
            ps:0) exec sleep 100;;
            worker:1) echo $$ >stopped; kill -STOP $$;;
            worker:2) while [ ! -e over ]; do sleep 0.02; done; sleep 1.5;;
            *) while ! grep -q ') T' /proc/$(cat stopped)/stat; do sleep 0.02; done 2>/dev/null; touch over;; esac""")
        self.assertEqual((job.returncode, job.stderr), (0, "troupe launch: worker:1 is stopped, as by SIGSTOP, and the job "
                                                        "is over: it is killed after 0.3 s\n"
                                                        "troupe launch: the job is over; waiting for worker:2\n"))

    def test_signals_are_passed_on(self):
        for number in [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]:
            name = "TERM" if number == signal.SIGQUIT else number.name.removeprefix("SIG")
            job = self.begin("-n 3", f"trap 'echo got {name}; exit 3' {name}; sleep 100 & touch {number.name}-$me; wait")
            self.files(f"{number.name}-*", 3)
            job.send_signal(number)
            out, err = job.communicate(timeout=60)
            self.assertEqual(job.returncode, 3)
            self.assertEqual(out.count(f"got {name}"), 3)
            self.assertIn(f"ended by {number.name} after ", err)

    def test_user_signals_end_nothing(self):
        job = self.begin("-n 2", """trap 'touch one-$me' USR1; trap 'touch two-$me; exit 0' USR2
            touch ready-$me; while :; do sleep 0.02; done""")
        self.files("ready-*", 2)
        job.send_signal(signal.SIGUSR1)
        self.files("one-*", 2)
        self.assertIsNone(job.poll())
        job.send_signal(signal.SIGUSR2)
        self.assertEqual(job.communicate(timeout=60), ("", ""))
        self.assertEqual(job.returncode, 0)

    def test_a_job_that_ends_well_when_asked_has_not_failed(self):
        # A shell may find its sleep terminated before it looks at its own signal, and says so.
        job = self.begin("-n 2", "exec 2>/dev/null; trap 'exit 0' TERM; sleep 100 & touch ready-$me; wait")
        self.files("ready-*", 2)
        job.terminate()
        self.assertEqual(job.communicate(timeout=60)[1],
                         "troupe launch: SIGTERM: ending 2 tasks; tasks that are left after 10 s are killed\n")
        self.assertEqual(job.returncode, 0)

    def test_a_server_that_does_not_end_when_asked_is_killed_even_if_all_others_have_ended(self):
        job = self.begin("-n 2 --ps 1 --grace 0.5", """
            case $me in ps:*) trap '' TERM;; *) trap 'exit 0' TERM;; esac
            touch ready-$me; while :; do sleep 0.02; done""")
        self.files("ready-*", 3)
        job.terminate()
        self.assertRegex(job.communicate(timeout=60)[1], "ended by SIGTERM after .* s; ps:0 was the first: signal 9")
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)

    def test_a_second_ctrl_c_kills_but_an_echo_of_the_first_does_not(self):
        job = self.begin("-n 2 --grace 100", "trap '' INT TERM; echo $$ >process-$me; while :; do sleep 0.1; done")
        processes = self.numbers("process-*", 2)
        job.send_signal(signal.SIGSTOP)  # so that it finds both, at whatever pace
        job.send_signal(signal.SIGINT)
        job.send_signal(signal.SIGTERM)
        job.send_signal(signal.SIGCONT)
        said = job.stderr.readline()  # of the one that came first: the launcher's threads may take one each
        self.assertRegex(said, "SIG(INT|TERM): ending 2 tasks")
        first = signal.SIGINT if "SIGINT" in said else signal.SIGTERM
        time.sleep(0.6)
        self.assertTrue(all(map(is_there, processes)))
        for _ in range(100):  # what comes within half a second is an echo yet
            job.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                job.communicate(timeout=0.6)
                break
        self.assertEqual(job.returncode, 128 + first)
        self.wait_until_gone(processes)

    def test_a_program_that_is_gone_ends_a_job_that_is_to_be_started_again(self):
        program = self.folder / "program"
        all_there = "while [ $(ls started-* | wc -l) -lt 3 ]; do sleep 0.02; done"
        program.write_text(f"#!/bin/sh\ntouch started-$$\n{all_there}\nrm -f program\nexit 1\n")
        program.chmod(0o755)
        result = subprocess.run([TROUPE, "launch", "-n", "3", "--restart", "1", "--", "./program"], cwd=self.folder,
                                env=PLAIN, text=True, capture_output=True, timeout=100)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("cannot start ./program", result.stderr)

    def test_too_few_descriptors_are_named_with_their_limit(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
        result = subprocess.run([TROUPE, "launch", "-n", "8", "--", "true"], env=PLAIN, text=True, capture_output=True,
                                timeout=100, preexec_fn=limit)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stderr, "troupe launch: cannot start true: Too many open files; ulimit -n sets the limit\n")

    def test_a_log_that_reaches_a_limit_on_file_sizes_ends_nothing(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4, 4))
        job = self.begin("-n 1 --log-dir logs", "echo one; echo two; kill -XFSZ $$", preexec_fn=limit)
        output, complaints = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 128 + signal.SIGXFSZ, complaints)
        self.assertEqual(output, "[worker:0] one\n[worker:0] two\n")
        self.assertRegex(complaints, "worker-0.log: File too large; the rest of this log is lost\n")

    def test_a_signal_that_nohup_ignores_stays_ignored(self):
        job = self.begin("-n 1", "touch ready; sleep 1; echo lived",
                         preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.files("ready", 1)
        job.send_signal(signal.SIGHUP)
        self.assertEqual(job.communicate(timeout=60)[0], "[worker:0] lived\n")
        self.assertEqual(job.returncode, 0)

    def test_a_launcher_whose_parent_blocks_signals_sees_its_tasks_end(self):
        done = subprocess.run(["env", "--block-signal", *self.command("-n 1", "exit 3")], cwd=self.folder, env=PLAIN,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 3)

    def test_tasks_do_not_outlive_a_launcher_that_is_killed(self):
        job = self.begin("-n 3", "echo $$ >process-$me; trap '' TERM; while :; do sleep 0.1; done")
        processes = self.numbers("process-*", 3)
        job.kill()
        job.communicate(timeout=60)
        self.wait_until_gone(processes)

    def test_waiting_costs_nothing_and_leaves_no_zombies(self):
        job = self.begin("-n 64 --log-dir logs", "touch ready-$me; [ $me = worker:63 ] && exit; exec sleep 100")
        self.files("ready-*", 64)

        def fields():
            return pathlib.Path(f"/proc/{job.pid}/stat").read_text().rsplit(")", 1)[1].split()

        def children():
            listed = pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
            return len(listed), sum(map(is_there, listed))

        end = time.monotonic() + 30
        while children() != (63, 63):
            self.assertLess(time.monotonic(), end, children())
            time.sleep(0.01)
        used = sum(map(int, fields()[11:13]))
        time.sleep(1)
        self.assertLessEqual(sum(map(int, fields()[11:13])) - used, 2)  # of 100 ticks
        job.terminate()
        job.communicate(timeout=60)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)
        self.assertEqual(len(list((self.folder / "logs").iterdir())), 64)

    # ---- refusals ----

    def test_nonsense_is_refused_in_one_line(self):
        (self.folder / "file").write_text("")
        for words, culprit in [
            ("-n 2", "which program?"),
            ("-n 2 true", "'true'"),
            ("-n 2 --", "no program"),
            ("-n 0 -- true", "troupe launch: -n,--workers must be a whole number from 1 to 256, not '0'"),
            ("-n 257 -- true", "'257'"),
            ("-n 200 --ps 57 -- true", "257 tasks"),
            ("-n two -- true", "'two'"),
            ("-- true", "-n"),
            ("-n -- true", "-n,--workers needs a value"),
            ("--wrokers 3 -- true", "'--workers'"),
            ("-n 2 --ps -1 -- true", "--ps"),
            ("-n 2 --grace soon -- true", "--grace"),
            ("-n 2 --grace nan -- true", "--grace"),
            ("-n 2 --fold sometimes -- true", "--fold must be one of auto, always, never, not 'sometimes'"),
            ("-n 2 --job-id a/b -- true", "--job-id"),
            ("-n 2 --kill-every 0 -- true", "--kill-every must be seconds from 0.001"),
            ("-n 2 --kill-every often -- true", "'often'"),
            ("-n 2 --kill-seed 3 -- true", "--kill-every"),
            ("-n 2 --kill-tasks ps -- true", "--kill-every"),
            ("-n 2 --kill-every 1 --kill-seed -1 -- true", "--kill-seed"),
            ("-n 1 --ps 1 --kill-every 1 -- true", "there is none; start more with -n, or name tasks with --kill-tasks"),
            ("-n 2 --kill-every 1 --kill-tasks worker,ps -- true", "no task of this job is 'ps'"),
            ("--task worker -- true", "--task: 'worker' is no task"),
            ("--task worker:1 -n 2 -- true", "leave out -n"),
            ("--task worker:1 --spare-workers -- true", "--spare-workers"),
            ("-n 2 --collect-output localhost:9500 -- true", "--task worker:1"),
            ("--task chief --collect-output 9500 -- true", "--collect-output: '9500' has no port"),
            ("--task chief --collect-output a:1 --send-output b:1 -- true", "or --send-output"),
            ("--task chief --insecure-network -- true", "--collect-output"),
            ("--task chief --collect-output 0.0.0.0:9500 -- true", "0.0.0.0:9500, where every machine can write to this terminal; "
                                                                  "allow it with --insecure-network"),
            ("--task chief --collect-output no-such-host.invalid:9500 -- true", "host 'no-such-host.invalid' is not known"),
            ("-n 2 -- no-such-program", "no-such-program: No such file"),
            ("-n 2 -- ./file", "./file: Permission denied"),
            ("-n 2 --log-dir file -- true", "--log-dir: cannot create file"),
            ("-n 2 --log-dir /proc/none -- true", "--log-dir: cannot create /proc/none"),
        ]:
            with self.subTest(words=words):
                refused = subprocess.run([TROUPE, "launch", *words.split()], cwd=self.folder, text=True,
                                         capture_output=True, timeout=60)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertEqual((refused.stdout, refused.stderr.count("\n")), ("", 1), refused.stderr)
                self.assertTrue(refused.stderr.startswith("troupe launch: "), refused.stderr)
                self.assertIn(culprit, refused.stderr)

    def test_a_log_that_cannot_be_written_is_told_of_once(self):
        (self.folder / "logs").mkdir()
        os.symlink("/dev/full", self.folder / "logs/worker-0.log")
        job = self.launch("-n 1 --log-dir logs", "echo a; sleep 0.1; echo b; exit 0")
        self.assertEqual((job.returncode, job.stdout), (0, "[worker:0] a\n[worker:0] b\n"))
        self.assertRegex(job.stderr, r"^troupe launch: .*worker-0\.log: No space left.*\n$")

    def test_a_full_disk_under_the_output_is_told_of_once_and_ends_nothing(self):
        with open("/dev/full", "w") as full:
            job = subprocess.run([TROUPE, "launch", "-n", "1", "--", "sh", "-c", "echo a; sleep 0.1; echo b"],
                                 stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual((job.returncode, job.stderr), (0,
                         "troupe launch: cannot write to standard output: No space left on device; "
                         "the tasks go on without it\n"))


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
