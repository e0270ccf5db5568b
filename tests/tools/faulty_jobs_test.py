# SPDX-License-Identifier: Apache-2.0
# Goal: a replica's function that throws, and a process that ends too early with exit code 0, end or do not end a job as
# docs/failures.md says, by role and by strategy.
# Method: real processes on this machine.  Usage: faulty_jobs_test.py PATH/TO/troupe PATH/TO/faulty_job
import json
import os
import re
import signal
import sys
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(2))
from job_processes import ALL_FOUR, PLAIN, Job, Process, addresses  # noqa: E402  it takes the path to troupe

SERVED = {"chief": 1, "ps": 1, "worker": 2}
SERVED_TWICE = {**SERVED, "ps": 2}
MET = {"worker": 3}
FOR_EVER = 1000000


class Faulty(Job):
    def begin(self, strategy, steps, counts, throws=None, holders=1):
        cluster = addresses(**counts)
        job = {}
        for kind, hosts in cluster.items():
            for index in range(len(hosts)):
                task = f"{kind}:{index}"
                config = {"cluster": cluster, "task": {"type": kind, "index": index}}
                command = [PROGRAM, strategy, str(steps), *(["throws"] if task == throws else []), str(holders)]
                job[task] = Process(self, task, command, {**PLAIN, "TF_CONFIG": json.dumps(config)})
        return job

    def begin_saving(self):
        """A job for evaluators, who do nothing to it."""
        return self.start(addresses(worker=1), "worker:0", *ALL_FOUR, "--checkpoint-every", "20", "--steps", str(FOR_EVER))

    def evaluator(self, *words):
        return Process(self, "evaluator", [PROGRAM, "evaluator", "run/checkpoints", *words], PLAIN)

    def ended(self, process, code, *patterns):
        """Waits for the end of a process, which has said all that."""
        process.process.wait(timeout=100)
        self.assertEqual(process.process.returncode, code, f"{process.name}\n{self.story()}")
        for pattern in patterns:
            self.assertRegex(process.errors(), re.compile(pattern, re.MULTILINE), f"{process.name}\n{self.story()}")

    def goes_on(self, job, pattern):
        """Waits until a chief that has said that makes more steps, and asks for a good end, which all come to."""
        chief = job["chief:0"]
        chief.says(rf"{pattern}[\s\S]*^step ")
        chief.send(signal.SIGTERM)
        for process in job.values():
            self.ended(process, 0)

    def leave(self, job, task, leader):
        """Has a task end in the midst of the job."""
        leader.says("^step 50$")
        job[task].send(signal.SIGUSR1)
        self.ended(job.pop(task), 0)


class ErrorInTheFunction(Faulty):
    def test_a_replica_that_throws_is_named_and_the_job_goes_on_where_there_is_a_backup(self):
        for faulty, replica in (("worker:1", 2), ("chief:0", 0)):
            with self.subTest(faulty=faulty):
                job = self.begin("backup", FOR_EVER, SERVED, throws=faulty)
                self.goes_on(job, f"lost replica {replica}: .*the examples are gone")

    def test_where_all_are_needed_it_ends_the_job_for_all(self):
        for faulty, replica in (("worker:1", 2), ("chief:0", 0)):
            with self.subTest(faulty=faulty):
                for process in self.begin("all", FOR_EVER, SERVED, throws=faulty).values():
                    self.ended(process, 1, f"^ended: .*replica {replica}.*the examples are gone")

    def test_where_replicas_meet_it_ends_the_job_for_all_and_its_process_is_named(self):
        for faulty in ("worker:2", "worker:0"):
            with self.subTest(faulty=faulty):
                job = self.begin("meeting", FOR_EVER, MET, throws=faulty)
                self.ended(job.pop(faulty), 1, "^ended: .*the examples are gone")
                for process in job.values():
                    self.ended(process, 4, f"^ended: .*{faulty}")

    def test_under_a_coordinator_join_throws_it(self):
        job = self.begin("coordinator", FOR_EVER, SERVED, throws="worker:1")
        self.ended(job.pop("chief:0"), 1, "^ended: 'step' failed at worker 1: .*the examples are gone")
        for process in job.values():
            self.ended(process, 0)

    def test_an_evaluator_that_throws_ends_alone(self):
        job = self.begin_saving()
        self.ended(self.evaluator("throws"), 1, "^ended: evaluating the checkpoint of step [0-9]+: the examples are gone")
        job.send(signal.SIGTERM)
        job.ends(128 + signal.SIGTERM)


class CleanExit(Faulty):
    def test_a_worker_that_leaves_is_named_and_the_job_goes_on_where_there_is_a_backup(self):
        job = self.begin("backup", FOR_EVER, SERVED)
        self.leave(job, "worker:1", job["chief:0"])
        self.goes_on(job, "lost replica 2: worker:1 .*is gone")

    def test_any_other_process_that_leaves_or_is_needed_ends_the_job_and_is_named(self):
        for strategy, gone in (("all", "worker:0"), ("backup", "ps:0"), ("backup", "chief:0")):
            with self.subTest(strategy=strategy, gone=gone):
                job = self.begin(strategy, FOR_EVER, SERVED)
                self.leave(job, gone, job["chief:0"])
                for process in job.values():
                    self.ended(process, 4, f"^ended: .*{gone} .*is gone")

    def test_where_replicas_meet_all_others_end_and_name_it(self):
        for gone in ("worker:2", "worker:0"):
            with self.subTest(gone=gone):
                job = self.begin("meeting", FOR_EVER, MET)
                self.leave(job, gone, job["worker:0"])
                for process in job.values():
                    self.ended(process, 4, f"^ended: .*{gone}")

    def test_under_a_coordinator_others_make_the_calls_of_a_worker_that_leaves(self):
        job = self.begin("coordinator", FOR_EVER, SERVED)
        self.leave(job, "worker:1", job["chief:0"])
        self.goes_on(job, "worker 1 is gone")

    def test_under_a_coordinator_any_other_process_that_leaves_is_named(self):
        for gone, told in (("ps:0", ["chief:0"]), ("chief:0", ["ps:0", "worker:0", "worker:1"])):
            with self.subTest(gone=gone):
                job = self.begin("coordinator", FOR_EVER, SERVED)
                self.leave(job, gone, job["chief:0"])
                for task, process in job.items():
                    self.ended(process, *((4, f"^ended: .*{gone}") if task in told else (0,)))

    def test_where_owners_are_replicated_the_job_goes_on_without_a_ps_that_leaves(self):
        for strategy in ("backup", "coordinator"):
            with self.subTest(strategy=strategy):
                job = self.begin(strategy, FOR_EVER, SERVED_TWICE, holders=2)
                self.leave(job, "ps:0", job["chief:0"])
                self.goes_on(job, "ps:0 .*is gone.*held once from now on: .*; the job goes on")

    def test_the_job_goes_on_when_an_evaluator_leaves(self):
        job = self.begin_saving()
        evaluator = self.evaluator()
        evaluator.says("^evaluated ")
        evaluator.send(signal.SIGUSR1)
        self.ended(evaluator, 0)
        job.send(signal.SIGTERM)
        job.ends(128 + signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
