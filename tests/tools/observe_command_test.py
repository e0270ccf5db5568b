# SPDX-License-Identifier: Apache-2.0
# Goal: a job that runs can be looked at, and one that hung or crashed tells what it did last.
# Method: runs `troupe train` and looks at it as users do.  Usage: observe_command_test.py PATH/TO/troupe
import http.client
import json
import os
import pty
import select
import shutil
import signal
import socket
import subprocess
import sys
import unittest

from own_folder import TextTest

TROUPE = os.path.abspath(sys.argv.pop(1))
SMALL = ["--text", "text", "--batch", "8", "--context", "4", "--embedding", "4", "--hidden", "16"]
ACTORS = {"chief", "token queue", "recorder", "replica 0", "replica 3", "owner embedding", "accumulator embedding"}


class Observe(TextTest):
    def start(self, *options):
        """A job that goes on until somebody ends it, and where it is served."""
        command = [TROUPE, "train", *SMALL, "--steps", "100000000", "--run-dir", "run", "--metrics-port", "0", *options]
        job = subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(job.stderr.close)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        for line in job.stderr:
            if line.startswith("metrics"):
                self.endpoint = line.split()[-1]
            if line.startswith("step"):
                return job
        self.fail("the job did not begin")

    def get(self, path, method="GET"):
        connection = http.client.HTTPConnection(self.endpoint, timeout=30)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def top(self, *options):
        return subprocess.run([TROUPE, "top", *options], text=True, capture_output=True, timeout=60)

    def record_of(self, job, number):
        """The flight record that comes of a signal."""
        job.send_signal(number)
        for line in job.stderr:
            if "flight.txt" in line:
                break
        return (self.folder / "run" / "flight.txt").read_text()

    def test_a_running_job_serves_its_figures_and_its_actors(self):
        self.start()
        samples = {"troupe_global_step": 0}
        while int(samples["troupe_global_step"]) < 1:  # told after the first line about a step
            answer, metrics = self.get("/metrics")
            self.assertEqual(answer.getheader("Content-Type"), "text/plain; version=0.0.4; charset=utf-8")
            self.assertTrue(metrics.endswith("\n"))
            samples = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
        self.assertEqual(samples["troupe_needed_gradients"], "3")
        answer, actors = self.get("/actors")
        self.assertEqual(answer.getheader("Content-Type"), "application/json")
        self.assertLessEqual(ACTORS, {actor["name"] for actor in json.loads(actors)})
        self.assertEqual([self.get(path)[0].status for path in ["/", "/nothing"]], [200, 404])
        self.assertEqual(self.get("/metrics", "POST")[0].status, 405)

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_prometheus_finds_nothing_to_complain_about(self):
        self.start()
        checked = subprocess.run(["promtool", "check", "metrics"], input=self.get("/metrics")[1], text=True,
                                 capture_output=True)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_top_prints_one_look_where_there_is_no_terminal(self):
        self.start()
        for options in [[], ["--once"]]:
            shown = self.top(*options, self.endpoint)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            self.assertIn("steps/s", shown.stdout)
            self.assertNotIn("\x1b", shown.stdout)
            names = [line.split("  ")[0] for line in shown.stdout.splitlines()]
            self.assertLessEqual(ACTORS, set(names))

    def test_top_ends_with_q_and_leaves_the_terminal_as_it_was(self):
        self.start()
        for key in [b"q", b"\x03"]:
            child, terminal = pty.fork()
            if child == 0:
                os.execve(TROUPE, [TROUPE, "top", "--period", "0.1", self.endpoint], {"TERM": "xterm"})
            shown = b""
            while b"replica 3" not in shown and select.select([terminal], [], [], 30)[0]:
                shown += os.read(terminal, 65536)
            os.write(terminal, key)
            try:
                while piece := os.read(terminal, 65536):
                    shown += piece
            except OSError:  # how the end of a terminal reads
                pass
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            os.close(terminal)
            self.assertIn(b"\x1b[?1049h", shown)
            self.assertTrue(shown.endswith(b"\x1b[?25h\x1b[?1049l"), shown[-40:])

    def test_top_says_in_one_line_what_it_cannot_do(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            nobody = "127.0.0.1:%d" % taken.getsockname()[1]
            for options, code, culprit in [
                ([nobody], 4, nobody),
                ([], 2, "HOST:PORT"),
                (["host"], 2, "'host'"),
                (["host:http"], 2, "'host:http'"),
                (["127.0.0.1:99999"], 2, "65535"),
                (["::1:9464"], 2, "brackets"),
                (["https://127.0.0.1:9464/"], 2, "without TLS"),
                (["--period", "0", nobody], 2, "--period"),
                (["--often", nobody], 2, "--often"),
            ]:
                with self.subTest(options=options):
                    refused = self.top(*options)
                    self.assertEqual(refused.returncode, code, refused.stderr)
                    self.assertEqual(refused.stderr.count("\n"), 1)
                    self.assertIn(culprit, refused.stderr)
        self.assertIn("Exit codes", self.top("--help").stdout)

    def test_a_port_that_is_taken_is_refused_before_anything_is_written(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            for options in [["--metrics-port", str(taken.getsockname()[1])],
                            ["--metrics-port", "0", "--metrics-address", "192.0.2.1"],
                            ["--metrics-port", "0", "--metrics-address", "localhost"],
                            ["--metrics-port", "65536"]]:
                refused = subprocess.run([TROUPE, "train", *SMALL, "--run-dir", "run", *options], cwd=self.folder,
                                         text=True, capture_output=True, timeout=60)
                self.assertEqual(refused.returncode, 2)
                self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
                self.assertIn("--metrics-port", refused.stderr)
                self.assertFalse((self.folder / "run").exists())

    def test_sigusr1_writes_a_flight_record_and_the_job_goes_on(self):
        job = self.start()
        record = self.record_of(job, signal.SIGUSR1)
        self.assertTrue(record.startswith("troupe flight record: SIGUSR1\n"))
        for actor in ACTORS:
            self.assertIn(f"\n{actor}: ", record)
        self.assertRegex(record, r"PushGradient +\d+  replica \d\n")
        self.assertEqual(self.get("/")[0].status, 200)
        job.terminate()
        job.stderr.read()
        self.assertEqual(job.wait(60), 128 + signal.SIGTERM)

    def test_a_crash_leaves_a_flight_record_and_its_exit_status(self):
        for number in [signal.SIGSEGV, signal.SIGABRT]:
            job = self.start()
            job.send_signal(number)
            self.assertEqual(job.wait(60), -number)
            record = (self.folder / "run" / "flight.txt").read_text()
            self.assertTrue(record.startswith(f"troupe flight record: crash ({number.name})\n"))
            self.assertIn("\nreplica 3: ", record)
            shutil.rmtree(self.folder / "run")

    def test_a_step_that_does_not_end_leaves_a_flight_record(self):
        late = subprocess.run([TROUPE, "train", *SMALL, "--policy", "latest_token", "--aggregate", "4", "--slow",
                               "2=1000", "--world", "virtual", "--deadline", "50", "--steps", "5", "--run-dir", "run"],
                              cwd=self.folder, text=True, capture_output=True, timeout=100)
        self.assertEqual(late.returncode, 5, late.stderr)
        record = (self.folder / "run" / "flight.txt").read_text()
        self.assertIn("still missing: replica 2", record.splitlines()[0])
        self.assertIn("\nreplica 2: computing, 0 in the mailbox", record)

    def test_flight_reads_regular_files_only_and_names_others(self):
        records = self.folder / "run" / "flight"
        records.mkdir(parents=True)
        os.mkfifo(records / "worker-1.jsonl")  # nothing ever writes into it
        command = [TROUPE, "flight", "run"]
        left_out = "troupe flight: run/flight/worker-1.jsonl is left out: it is no regular file\n"
        none = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=30)
        self.assertEqual(none.returncode, 2)
        self.assertTrue(none.stderr.startswith(left_out + "troupe flight: run/flight: there are no flight records"))
        (records / "worker-0.jsonl").write_text('{"task": "worker:0", "reason": "SIGUSR1"}\n')
        one = subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=30)
        self.assertEqual((one.returncode, one.stderr), (0, left_out))
        self.assertTrue(one.stdout.startswith("flight records of 1 tasks: SIGUSR1\n"))


if __name__ == "__main__":
    unittest.main()
