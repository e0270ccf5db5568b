# SPDX-License-Identifier: Apache-2.0
# Goal: a job of several tasks can be seen from its chief: what each replica does, which task is lost, and what all did
# last.  Method: real processes, one of them slow.  Usage: observed_jobs_test.py PATH/TO/troupe
import http.client
import json
import os
import re
import signal
import subprocess
import unittest

import job_processes
from job_processes import A_BACKUP, FOR_EVER, TIMEOUT, SMALL, TROUPE, WATCHED

OFTEN = "--observe-period 0.1".split()
TASKS = ["worker:0", "worker:1", "worker:2", "worker:3"]


class ObservedJobs(job_processes.Job):
    def start_slow_one(self, *options):
        """A job whose replica 3 takes a million times as long for a gradient as the others."""
        job = self.start_all(job_processes.addresses(worker=4), *A_BACKUP, *FOR_EVER, *WATCHED, *options, "--slow", "3=1000000")
        job["worker:0"].makes_steps(3)
        return job

    def endpoint(self, chief):
        return re.search(r"metrics +http://([^/]+)/metrics", chief.errors())[1]

    def actors(self, chief):
        """What /actors of the chief says, by task and name."""
        connection = http.client.HTTPConnection(self.endpoint(chief), timeout=TIMEOUT)
        connection.request("GET", "/actors")
        actors = json.loads(connection.getresponse().read())
        connection.close()
        return {(actor["task"], actor["name"]): actor for actor in actors}

    def command(self, *arguments):
        return subprocess.run([TROUPE, *arguments], cwd=self.folder, text=True, capture_output=True, timeout=TIMEOUT)

    def test_the_chief_shows_all_tasks_and_that_the_slow_one_computes(self):
        chief = self.start_slow_one(*OFTEN)["worker:0"]
        chief.until(lambda: {task for task, _ in self.actors(chief)} == set(TASKS), "reports of all tasks")

        def slow_one():
            slow = self.actors(chief).get(("worker:3", "replica 3"))
            return slow if slow and slow["state"] == "computing" and slow["state_seconds"] > 1 else None

        slow = chief.until(slow_one, "a replica that computes for more than a second")
        self.assertLess(slow["task_age_seconds"], TIMEOUT)
        top = self.command("top", "--once", self.endpoint(chief))
        self.assertRegex(top.stdout, r"(?m)^replica 3 +worker:3 +computing ")
        self.assertIn("of 4 tasks", top.stdout)
        metrics = chief.figures()
        self.assertEqual(metrics['troupe_actor_computing{task="worker:3",name="replica 3"}'], 1)
        self.assertEqual([metrics[f'troupe_task_up{{task="{task}"}}'] for task in TASKS], [1] * 4)

    def test_a_task_that_is_killed_is_shown_as_lost_with_what_is_known_of_it(self):
        job = self.start_slow_one(*OFTEN)
        chief = job["worker:0"]
        chief.until(lambda: ("worker:3", "replica 3") in self.actors(chief), "a report of the slow task")
        job["worker:3"].send(signal.SIGKILL)
        chief.until(lambda: chief.figures().get('troupe_task_up{task="worker:3"}') == 0, "the loss of a task")
        self.assertEqual(self.actors(chief)["worker:3", "replica 3"]["state"], "lost")
        top = self.command("top", "--once", self.endpoint(chief))
        self.assertRegex(top.stdout, r"(?m)^worker:3: lost, last seen .* ago$")

    def test_sigusr1_at_the_chief_leaves_records_of_all_tasks(self):
        job = self.start_slow_one()
        chief = job["worker:0"]
        chief.send(signal.SIGUSR1)
        chief.says("the last messages of all tasks stand in .*flight$")
        names = sorted(path.name for path in (self.folder / "run" / "flight").iterdir())
        self.assertEqual(names, [f"worker-{index}.jsonl" for index in range(4)])
        for name in names:
            for line in (self.folder / "run" / "flight" / name).read_text().splitlines():
                json.loads(line)
        shown = self.command("flight", "run")
        self.assertEqual((shown.returncode, shown.stderr), (0, ""))
        self.assertRegex(shown.stdout, r"(?m)^worker:3 fell behind: replica 3 has been computing for ")

    def test_a_task_that_does_not_answer_is_named(self):
        job = self.start_slow_one()
        job["worker:3"].send(signal.SIGSTOP)
        job["worker:0"].send(signal.SIGUSR1)
        job["worker:0"].says("the last messages of all tasks .*; worker:3 did not answer")
        # Its loss, a moment later, has records collected again.
        self.assertRegex(self.command("flight", "run").stdout, r"(?m)^worker:3 (did not answer|is lost; it reported last at .*)$")

    def test_where_there_is_no_chief_the_first_process_shows_all_tasks(self):
        job = self.start_all(job_processes.addresses(worker=4), *SMALL, "--strategy", "multi_worker_mirrored", *FOR_EVER,
                             *WATCHED, *OFTEN)
        first = job["worker:0"]
        first.makes_steps(3)
        first.until(lambda: {task for task, _ in self.actors(first)} == set(TASKS), "reports of all tasks")
        first.until(lambda: ("worker:3", "replica 3") in self.actors(first), "a report of a replica")
        self.assertIn("of 4 tasks", self.command("top", "--once", self.endpoint(first)).stdout)
        first.send(signal.SIGUSR1)
        first.says("the last messages of all tasks stand in .*flight$")
        self.assertEqual(len(list((self.folder / "run" / "flight").iterdir())), 4)
        first.send(signal.SIGTERM)
        for name in TASKS:
            job[name].ends(143 if name == "worker:0" else 0)

    def test_observation_can_be_left_out(self):
        chief = self.start_slow_one("--observe-period", "0")["worker:0"]
        self.assertEqual({task for task, _ in self.actors(chief)}, {None})
        self.assertFalse([name for name in chief.figures() if name.startswith("troupe_task")])

    def test_a_folder_without_records_is_refused_in_one_line(self):
        os.makedirs(self.folder / "run" / "flight")
        for arguments, culprit in [(["run"], "run/flight"), ([], "troupe flight runs/NAME"), (["nowhere"], "nowhere")]:
            refused = self.command("flight", *arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1)
            self.assertIn(culprit, refused.stderr)


if __name__ == "__main__":
    unittest.main(testRunner=job_processes.SideBySide())
