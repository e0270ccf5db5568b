# SPDX-License-Identifier: Apache-2.0
# Goal: a job that loses a process goes on with it as soon as it is back, or from what was saved, as it was told to; and
# what it has accepted is part of its variables, once.
# Method: real processes on this machine, killed, and started again by the launcher, or by the test.  SURVIVAL_KILLS=100
# kills more, in two minutes for each of the tests that count them.
# Usage: survival_test.py PATH/TO/troupe PATH/TO/counted_job
import collections
import csv
import json
import os
import random
import re
import signal
import sys
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(2))
from job_processes import (A_BACKUP, ALL_FOUR, FOR_EVER, TIMEOUT, PLAIN, SMALL, TROUPE, WATCHED, Job, Process,  # noqa: E402
                           SideBySide, addresses, process_of)

KILLS = int(os.environ.get("SURVIVAL_KILLS", "6"))


class Survival(Job):
    def launch(self, *options, workers=2, ps=1, restarts=3, launcher=()):
        self.job_id = f"survival-{os.getpid()}-{len(self.processes)}"
        command = [TROUPE, "launch", "-n", str(workers), "--ps", str(ps), "--restart", str(restarts), "--job-id",
                   self.job_id, *launcher, "--", TROUPE, "train", "--run-dir", "run", *options]
        job = Process(self, "launch", command, PLAIN)
        job.says(r"\[worker:0\] step ")
        return job

    def kill(self, task):
        number = process_of(self.job_id, task)
        self.assertIsNotNone(number, self.story())
        os.kill(number, signal.SIGKILL)

    def stop(self, job):
        """Ends a launched job after some more steps."""
        job.makes_steps(50, task="[worker:0] ")
        job.send(signal.SIGINT)
        job.ends(128 + signal.SIGINT)

    def wait_for_a_checkpoint(self, job, run):
        job.until(lambda: list((self.folder / run).glob("checkpoints/checkpoint-*.safetensors")), "a checkpoint")

    def ledger(self, run):
        """What became of each gradient, by step."""
        steps = collections.defaultdict(collections.Counter)
        with open(self.folder / run / "ledger.csv", newline="") as lines:
            for line in csv.DictReader(lines):
                steps[int(line["step"])][line["verdict"]] += 1
        return steps

    def test_a_killed_worker_is_started_again_and_takes_part_again(self):
        job = self.launch(*A_BACKUP, *FOR_EVER, *WATCHED, workers=4)
        self.kill("worker:2")
        job.says("worker:2 failed: signal 9 .SIGKILL.; it is started again, 2 restarts are left")
        job.says("lost replica 2")
        job.makes_steps(10, task="[worker:0] ", live=4)
        job.send(signal.SIGINT)
        job.ends(130)

    def test_a_job_with_a_backup_outlasts_the_loss_of_a_worker_without_any_option(self):
        job = self.launch(*A_BACKUP, *FOR_EVER, *WATCHED, workers=4, restarts=0)
        self.kill("worker:2")
        job.says("worker:2 failed: signal 9 .SIGKILL.; it is up to the others whether they go on without it")
        job.says("lost replica 2.*; the job goes on with 3 of 4 replicas")
        job.makes_steps(10, task="[worker:0] ", live=3)
        self.kill("worker:3")
        job.ends(4)
        self.assertRegex(job.errors(), "(worker:0|ps:0) failed: exit code 4 after .* s, when the job had lost worker:2: signal 9")

    def test_a_job_that_needs_all_is_ended_with_the_first_worker(self):
        job = self.launch(*ALL_FOUR, *FOR_EVER, workers=4, restarts=0)
        self.kill("worker:2")
        job.ends(128 + signal.SIGKILL)
        self.assertIn("worker:2 failed: signal 9 (SIGKILL); ending ", job.errors())
        self.assertNotIn("the job goes on", job.errors())

    def test_a_job_whose_owners_have_mirrors_outlasts_the_loss_of_one_without_any_option(self):
        job = self.launch(*A_BACKUP, *FOR_EVER, "--replicate-owners", "2", workers=2, ps=2, restarts=0)
        self.kill("ps:1")
        job.says("ps:1 failed: signal 9 .SIGKILL.; it is up to the others whether they go on without it")
        job.says("held once from now on: .*; the job goes on")
        job.send(signal.SIGINT)
        job.ends(130)

    def test_a_job_that_needs_all_waits_for_the_return_of_one(self):
        job = self.launch(*ALL_FOUR, *FOR_EVER, *WATCHED, "--rejoin-timeout", "60")
        self.kill("worker:1")
        job.says("lost replica 2")
        self.stop(job)
        self.assertNotIn("all tasks are started again", job.errors())
        # A replica that was killed in the middle of giving a gradient may stand in the line of the next step.
        steps = int(self.trained()[0].split("-")[1])
        self.assertEqual(sum(of["accepted"] for of in self.ledger("run").values()), 4 * steps)

    def test_a_job_that_has_lost_its_ps_goes_on_from_what_was_saved(self):
        job = self.launch(*ALL_FOUR, "--steps", "2500", "--checkpoint-every", "50")
        self.wait_for_a_checkpoint(job, "run")
        self.kill("ps:0")
        job.says("ps:0 failed: signal 9 .SIGKILL.; all tasks are started again when 2 others have ended, 2 restarts")
        job.says(r"\[worker:0\] resume    run from step \d+")
        job.ends(0)
        self.assertEqual(self.trained("run-2")[0], "checkpoint-2500")

    def test_a_job_that_has_lost_its_chief_goes_on_from_what_was_saved_again_and_again(self):
        job = self.launch(*ALL_FOUR, *FOR_EVER, *WATCHED, "--checkpoint-every", "50")
        for attempt in ("run", "run-2"):
            job.says(rf"\[worker:0\] files     {attempt}$")
            self.wait_for_a_checkpoint(job, attempt)
            self.kill("worker:0")
        line = job.says(r"\[worker:0\] resume    run-2 from step \d+")
        self.stop(job)
        self.assertGreater(int(self.trained("run-3")[0].split("-")[1]), int(line.split()[-1]))

    def test_a_job_that_has_saved_nothing_begins_anew(self):
        job = self.launch(*ALL_FOUR, *FOR_EVER, *WATCHED, "--checkpoint-every", "0")
        self.kill("ps:0")
        job.says(r"\[worker:0\] files     run-2$")
        self.stop(job)
        self.assertNotIn("resume", job.errors())

    def test_when_no_restarts_are_left_the_job_has_failed(self):
        job = self.launch(*ALL_FOUR, *FOR_EVER, restarts=1)
        self.kill("ps:0")
        job.says(r"\[worker:0\] files     run-2$")
        job.says(r"run-2$[\s\S]*\[worker:0\] step ")
        self.kill("ps:0")
        job.ends(128 + signal.SIGKILL)

    def test_a_job_may_stop_with_a_checkpoint_of_the_step_that_it_has_come_to(self):
        cluster = addresses(ps=1, worker=2)
        # Its replicas compute nearly all the time: one that is killed while it gives leaves its step half done.
        job = self.start_all(cluster, *ALL_FOUR, *FOR_EVER, "--on-loss", "stop", "--checkpoint-every", "1000000",
                             "--slow", "2=50", "--slow", "3=50")
        job["worker:0"].says("^step ")
        job["worker:1"].send(signal.SIGKILL)
        for name in ("worker:0", "ps:0"):
            job[name].ends(4, "lost replica [23]: .*worker:1.* is gone.*; the job stops for that")
        name, _ = self.trained()
        self.assertEqual(int(name.split("-")[1]), max(self.ledger("run")))
        self.start_all(cluster, *ALL_FOUR, "--resume", "run", "--steps", str(int(name.split("-")[1]) + 20),
                       "--run-dir", "more")["worker:0"].ends(0)

    def test_workers_may_enter_a_job_that_goes_on_and_leave_it(self):
        options = [*SMALL, "--policy", "latest_token", "--aggregate", "2", "--min-replicas", "2", *FOR_EVER, *WATCHED]
        cluster = addresses(ps=1, worker=4)
        job = {name: self.start(cluster, name, *options) for name in ("ps:0", "worker:0", "worker:1")}
        chief = job["worker:0"]
        chief.says("the job begins with 2 of 4 replicas; worker:2 .*, worker:3 .* may enter later")
        chief.makes_steps(5, live=2)
        for name in ("worker:2", "worker:3"):
            job[name] = self.start(cluster, name, *options)
        chief.makes_steps(5, live=4)
        job["worker:2"].send(signal.SIGTERM)
        job["worker:2"].ends(0, "left the job, as it was asked to, after step")
        chief.says("replica 2 leaves after step .*; the job goes on with 3 of 4 replicas")
        chief.makes_steps(5, live=3)
        job["worker:3"].send(signal.SIGKILL)
        chief.says("lost replica 3: .*; the job goes on with 2 of 4 replicas")
        job["worker:2"] = self.start(cluster, "worker:2", *options)
        chief.says("replica 2 joins after step", times=2)
        chief.makes_steps(5, live=3)
        chief.send(signal.SIGINT)
        for name, code in (("worker:0", 130), ("worker:1", 0), ("worker:2", 0), ("ps:0", 0)):
            job[name].ends(code)
        self.assertEqual(self.trained()[0], f"checkpoint-{max(self.ledger('run'))}")

    def kill_many(self, job, others={}):
        """Kills workers that are started again, at moments of chance, and other tasks in the place of some."""
        random.seed(KILLS)
        for number in range(KILLS):
            task = others.get(number, f"worker:{random.randrange(1, 4)}")
            job.until(lambda: process_of(self.job_id, task), f"a {task}")
            self.kill(task)
            time.sleep(random.uniform(0, 2 * 1.2))
        job.send(signal.SIGINT)
        job.ends(130)

    def check_that_no_step_is_missing(self, job):
        steps = self.ledger("run")
        self.assertEqual(sorted(steps), list(range(1, max(steps) + 1)))
        # A gradient that came too late for one of its variables, or for some of them never, is part of the others'
        # updates, and stands in the ledger as stale, or with a later step.
        self.assertGreaterEqual(sum(of["accepted"] + of["stale"] for of in steps.values()), 3 * len(steps))
        self.assertEqual(self.trained()[0], f"checkpoint-{max(steps)}")
        self.assertNotIn("all tasks are started again", job.errors())

    def test_no_kill_of_a_worker_loses_a_step_or_hangs_the_job(self):
        job = self.launch(*A_BACKUP, *FOR_EVER, "--rejoin-timeout", "60", workers=4, ps=2, restarts=1000)
        self.kill_many(job)
        self.check_that_no_step_is_missing(job)

    def test_nor_does_that_of_an_owner_among_them_where_owners_are_replicated(self):
        job = self.launch(*A_BACKUP, *FOR_EVER, "--rejoin-timeout", "60", "--replicate-owners", "2", workers=4, ps=2,
                          restarts=1000, launcher=["--spare-ps"])
        self.kill_many(job, {KILLS // 3: "ps:0"})
        self.check_that_no_step_is_missing(job)
        self.assertIn("held once from now on", job.errors())
        lost = len(re.findall("lost replica", job.errors()))
        self.assertGreaterEqual(lost, KILLS // 2)  # a worker that is killed before it has entered is none


class Counted(Job):
    """Jobs in which each gradient leaves a trace, so that the variables can be compared with what was accepted."""

    def begin(self, task):
        kind, index = task.split(":")
        config = {"cluster": self.cluster, "task": {"type": kind, "index": int(index)}}
        return Process(self, task, [PROGRAM, *self.options], {**PLAIN, "TF_CONFIG": json.dumps(config)})

    def lose_one_after_the_other(self, tasks, policy, owner_copies, aggregate="3"):
        self.cluster, self.options = addresses(ps=2, worker=4), [policy, aggregate, owner_copies, "0"]
        job = {f"{kind}:{index}": self.begin(f"{kind}:{index}")
               for kind, hosts in self.cluster.items() for index in range(len(hosts))}
        chief = job["worker:0"]
        chief.says("^step 50$")
        random.seed(KILLS)
        returns = 0
        for task in tasks:
            job[task].send(signal.SIGKILL)
            job[task].process.wait()
            chief.says(f"{task} .*is gone")
            time.sleep(random.uniform(0.1, 0.5))  # lives of a process are told apart by tenths of a second
            job[task] = self.begin(task)
            if task.startswith("ps"):
                returns += 1
                chief.says("held twice again", times=returns)
            else:
                job[task].says("^begins$")  # a chief that has left takes nobody in
            time.sleep(random.uniform(0.2, 0.6))
        self.check_counts(chief, job.values())

    def come_and_go(self, policy, aggregate):
        """Two workers enter a job that goes on, and leave it as they are asked to, or are killed."""
        self.cluster, self.options = addresses(ps=2, worker=4), [policy, aggregate, "1", "2"]
        job = {task: self.begin(task) for task in ("ps:0", "ps:1", "worker:0", "worker:1")}
        chief = job["worker:0"]
        chief.says("the job begins with 2 of 4 replicas; worker:2 .*, worker:3 .* may enter later")
        random.seed(KILLS)
        for _ in range(min(2 * KILLS, 24)):
            task = random.choice(("worker:2", "worker:3"))
            if task in job:
                how = random.choice((signal.SIGTERM, signal.SIGKILL))
                job[task].send(how)
                code = job.pop(task).process.wait(timeout=TIMEOUT)
                self.assertEqual(code, 0 if how == signal.SIGTERM else -how, self.story())
            else:
                job[task] = self.begin(task)
                job[task].says("^begins$")
            time.sleep(random.uniform(0.2, 0.6))
        self.check_counts(chief, job.values())

    def check_counts(self, chief, processes):
        chief.send(signal.SIGTERM)
        for process in processes:
            process.process.wait(timeout=TIMEOUT)
            self.assertEqual(process.process.returncode, 0, self.story())
        self.assertRegex(chief.errors(), r"\naccepted \d{3,}, missing 0, too many 0\n", self.story())

    def test_gradients_of_workers_that_are_killed_count_once(self):
        for policy in ("latest_token", "cancel"):
            with self.subTest(policy=policy):
                workers = [f"worker:{number % 3 + 1}" for number in range(KILLS // 2)]
                self.lose_one_after_the_other(workers, policy, "1")

    def test_gradients_of_workers_that_come_late_and_leave_count_once(self):
        for policy, aggregate in (("latest_token", "2"), ("cancel", "2"), ("k_async", "2"), ("ssp", "1")):
            with self.subTest(policy=policy):
                self.come_and_go(policy, aggregate)

    def test_gradients_count_once_where_parameter_servers_are_killed_that_have_mirrors(self):
        self.lose_one_after_the_other(["ps:0", "worker:1", "ps:1", "worker:2"], "latest_token", "2")

    def test_gradients_count_once_where_training_is_asynchronous(self):
        for policy, aggregate in (("k_async", "3"), ("ssp", "1")):
            with self.subTest(policy=policy):
                self.lose_one_after_the_other(["ps:0", "ps:1", "ps:0"], policy, "2", aggregate)


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
