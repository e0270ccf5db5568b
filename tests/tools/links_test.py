# SPDX-License-Identifier: Apache-2.0
# Goal: what happens to links, of two processes alone or of a process to all, ends as docs/failures.md says: where owners
# are replicated, where replicas meet, and under a coordinator.
# Method: real processes on hosts that are network namespaces; skipped where there can be none.
# Usage: links_test.py PATH/TO/troupe PATH/TO/coordinated_job
import itertools
import json
import os
import re
import signal
import sys
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(2))
from job_hosts import PORT, Hosts  # noqa: E402  it takes the path to troupe
from job_processes import FOR_EVER, TIMEOUT, PLAIN, SMALL, Process, SideBySide  # noqa: E402

THREE = [*SMALL[:-1], "3", "--policy", "latest_token"]
ALL_THREE = THREE + ["--aggregate", "3"]
A_BACKUP = THREE + ["--aggregate", "2"]
TWICE = ["--replicate-owners", "2"]
MEETING = [*SMALL[:-1], "3", "--strategy", "multi_worker_mirrored"]


class OneLink(Hosts):
    """Two processes lose each other, and nobody else does."""

    TASKS = ("chief:0", "ps:0", "ps:1", "worker:0", "worker:1")

    def has_left(self, job, *tasks):
        """The first of these tasks that has ended, because it cannot be reached."""
        gone = lambda: next((task for task in tasks if job[task].process.poll() is not None), None)
        lost = job["chief:0"].until(gone, f"one of {tasks} has left")
        job[lost].ends(4, "chief:0 .*is gone: it has given this process up: 'ps:. .*cannot reach it'")
        return lost

    def test_of_two_owners_that_lose_each_other_one_leaves_and_no_step_is_lost(self):
        same_rate = "--learning-rate-decay none".split()  # however many steps there are to be
        options = [*ALL_THREE, *FOR_EVER, *same_rate, *TWICE]
        job = self.begin("run", options)
        job["chief:0"].says("^step ")
        self.part("ps:0", "ps:1")
        lost = self.has_left(job, "ps:0", "ps:1")
        stays = "ps:1" if lost == "ps:0" else "ps:0"
        job["chief:0"].says(f"{lost} .*{stays} .*cannot reach it.*; held once from now on: .*; the job goes on")
        self.bring_together("ps:0", "ps:1")
        job[lost] = self.start_there(lost, "run", options)
        job["chief:0"].says("held twice again: ")
        job.pop(stays).send(signal.SIGKILL)
        job["chief:0"].says("held once from now on", times=2)
        job["chief:0"].says(r"held once[\s\S]*?held once[\s\S]*?\nstep ")
        job["chief:0"].send(signal.SIGINT)
        for task, process in job.items():
            process.ends(128 + signal.SIGINT if task == "chief:0" else 0)
        name, trained = self.trained()
        self.assertEqual((name, trained), self.alone(*ALL_THREE, *same_rate, "--steps", name.split("-")[1]))

    def test_a_worker_that_cannot_reach_a_ps_is_named_and_leaves_until_it_is_started_again(self):
        needed = ALL_THREE + ["--rejoin-timeout", "60"]
        ways = {"a backup": A_BACKUP, "needed": needed, "held twice": needed + TWICE}
        ports = dict(zip(ways, itertools.count(PORT)))  # all lose the same link
        jobs = {way: self.begin(way, options + FOR_EVER, ports[way]) for way, options in ways.items()}
        for job in jobs.values():
            job["chief:0"].says("^step ")
        began = time.monotonic()
        self.part("ps:0", "worker:1")
        reason = "worker:1 .*cannot go on: ps:0 .*is gone"
        for way, job in jobs.items():
            job.pop("worker:1").ends(4, reason)
            goes_on = "; the job goes on with 2 of 3 replicas" if way == "a backup" else ""
            job["chief:0"].says(f"lost replica 2: {reason}.*{goes_on}")
        self.assertGreater(time.monotonic() - began, 15)  # which the one with mirrors has looked for the holders of its variables
        self.bring_together("ps:0", "worker:1")
        for way, job in jobs.items():
            if way != "a backup":
                job["worker:1"] = self.start_there("worker:1", way, ways[way] + FOR_EVER, ports[way])
                job["chief:0"].says(r"lost replica 2[\s\S]*\nstep ")
            job["chief:0"].send(signal.SIGINT)
            for task, process in job.items():
                process.ends(128 + signal.SIGINT if task == "chief:0" else 0)


class WhereReplicasMeet(Hosts):
    TASKS = ("worker:0", "worker:1", "worker:2")

    def test_all_end_if_one_is_cut_off(self):
        for lost in ("worker:1", "worker:0"):
            with self.subTest(lost=lost):
                job = self.begin(lost.replace(":", "-"), MEETING + FOR_EVER)
                job["worker:0"].says("^step ")
                self.cut(lost)
                for task, process in job.items():
                    process.ends(4, "is gone" if task == lost else f"{lost} .*is gone")
                self.restore(lost)

    def test_a_process_that_is_back_soon_or_comes_late_is_not_missed(self):
        options = MEETING + ["--steps", "600"]
        alone = self.alone(*options)
        for who in ("worker:1", "worker:0"):
            with self.subTest(who=who):
                run = who.replace(":", "-")
                job = {task: self.start_there(task, run, options) for task in self.TASKS if task != who}
                time.sleep(0.5)
                job[who] = self.start_there(who, run, options)
                job["worker:0"].says("^step ")
                self.cut(who)
                time.sleep(0.3)
                self.restore(who)
                for process in job.values():
                    process.ends(0)
                self.assertEqual(self.trained(run), alone)

    def test_a_slow_link_slows_the_job_and_changes_nothing(self):
        options = MEETING + ["--steps", "15"]
        alone = self.alone(*options)
        self.slow_down("worker:1")
        for process in self.begin("run", options).values():
            process.ends(0)
        self.assertEqual(self.trained(), alone)


class Closures(Hosts):
    """Jobs of a coordinator."""

    def start_closures(self, task, steps, port=PORT, holders=1):
        kind, index = task.split(":")
        config = {"cluster": self.cluster(port), "task": {"type": kind, "index": int(index)}}
        command = [*self.there(task), PROGRAM, str(steps), str(holders)]
        return Process(self, task, command, {**PLAIN, "TF_CONFIG": json.dumps(config)})

    def begin_closures(self, steps, *where_and_how):
        return {task: self.start_closures(task, steps, *where_and_how) for task in self.TASKS}

    def is_over(self, process, code, pattern=""):
        process.process.wait(timeout=TIMEOUT)
        self.assertEqual(process.process.returncode, code, self.story())
        self.assertRegex(process.errors(), re.compile(pattern, re.MULTILINE), self.story())

    def all_end(self, job, steps):
        for process in job.values():
            self.is_over(process, 0)
        self.assertIn(f"counted {steps}\n", job["chief:0"].errors(), self.story())


class OwnersHeldTwice(Closures):
    TASKS = OneLink.TASKS

    def test_jobs_lose_no_step_with_a_ps_that_is_cut_off(self):
        options = ALL_THREE + TWICE + ["--steps", "600"]
        trains = self.begin("run", options)
        calls = self.begin_closures(500, PORT + 1, 2)
        trains["chief:0"].says("^step ")
        calls["chief:0"].says("^step 50$")
        self.cut("ps:1")
        lost = "ps:1 .*is gone.*; held once from now on: .*; the job goes on"
        for job in (trains, calls):
            job["chief:0"].says(lost)
        trains.pop("ps:1").ends(4, "is gone")
        self.is_over(calls.pop("ps:1"), 4, "is gone")
        for process in trains.values():
            process.ends(0)
        self.assertEqual(self.trained(), self.alone(*ALL_THREE, "--steps", "600"))
        self.all_end(calls, 500)


class Coordinated(Closures):
    TASKS = ("chief:0", "ps:0", "worker:0", "worker:1")

    def test_others_make_the_calls_of_a_worker_that_is_cut_off_or_frozen(self):
        for harm in ("cut off", "frozen"):
            with self.subTest(harm=harm):
                job = self.begin_closures(100000)
                job["worker:1"].says("worker 1 begins")
                self.cut("worker:1") if harm == "cut off" else job["worker:1"].send(signal.SIGSTOP)
                job["chief:0"].says(r"worker 1 is gone \(worker:1 [\s\S]*\nstep [\s\S]*\nstep ")
                job["chief:0"].send(signal.SIGUSR1)  # it has enough
                for task in ("chief:0", "ps:0", "worker:0"):
                    self.is_over(job[task], 0)
                self.restore("worker:1") if harm == "cut off" else job["worker:1"].send(signal.SIGCONT)
                self.is_over(job["worker:1"], 4)

    def test_a_process_that_is_cut_off_for_a_moment_is_not_missed(self):
        for cut in ("worker:1", "ps:0", "chief:0"):
            with self.subTest(cut=cut):
                job = self.begin_closures(300)
                job["chief:0"].says("^step 50$")
                self.cut(cut)
                time.sleep(0.3)
                self.restore(cut)
                self.all_end(job, 300)

    def test_a_ps_that_is_cut_off_is_named(self):
        job = self.begin_closures(100000)
        job["chief:0"].says("^step 50$")
        self.cut("ps:0")
        self.is_over(job["chief:0"], 4, "^('step' failed at worker [01]: .*)?ps:0")
        for task in ("worker:0", "worker:1"):
            self.is_over(job[task], 0)
        self.is_over(job["ps:0"], 4, "is gone")

    def test_a_chief_that_is_cut_off_is_named_by_all(self):
        job = self.begin_closures(100000)
        job["chief:0"].says("^step 50$")
        self.cut("chief:0")
        for task in ("ps:0", "worker:0", "worker:1"):
            self.is_over(job[task], 4, "chief:0")
        self.is_over(job["chief:0"], 4, "ps:0")

    def test_a_late_start_and_a_slow_link_change_nothing(self):
        for who in ("worker:1", "ps:0", "chief:0"):
            with self.subTest(who=who):
                self.slow_down(who)
                job = {task: self.start_closures(task, 150) for task in self.TASKS if task != who}
                if who == "worker:1":
                    job["chief:0"].says("^step 50$")
                else:
                    time.sleep(0.5)
                    self.assertNotIn("begins", job["worker:0"].errors())
                job[who] = self.start_closures(who, 150)
                self.all_end(job, 150)
                self.speed_up(who)


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
