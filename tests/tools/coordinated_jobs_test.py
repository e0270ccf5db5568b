# SPDX-License-Identifier: Apache-2.0
# Goal: a coordinator goes on without a worker that is killed, and with it when it is started again; likewise, where
# owners are replicated, a parameter server, and no change is lost or made twice; whoever else is killed is named by all.
# Method: real processes on this machine.  Usage: coordinated_jobs_test.py PATH/TO/troupe PATH/TO/coordinated_job
import json
import os
import random
import re
import signal
import sys
import time
import unittest

PROGRAM = os.path.abspath(sys.argv.pop(2))
import cluster_jobs_test as jobs  # noqa: E402  it takes the path to troupe

CLUSTER = {"chief": 1, "ps": 1, "worker": 2}
TWO_SERVERS = {"chief": 1, "ps": 2, "worker": 2}
FOR_EVER = 1_000_000  # steps


class Coordinated(jobs.Job):
    holders = 1  # of each variable

    def start_task(self, cluster, task, steps=FOR_EVER):
        kind, index = task.split(":")
        config = {"cluster": cluster, "task": {"type": kind, "index": int(index)}}
        return jobs.Process(self, task, [PROGRAM, str(steps), str(self.holders)], {**jobs.PLAIN, "TF_CONFIG": json.dumps(config)})

    def restart(self, cluster, task):
        time.sleep(0.2)  # lives of a process are told apart by tenths of a second
        return self.start_task(cluster, task)

    def begin(self, steps=FOR_EVER, counts=CLUSTER):
        cluster = jobs.addresses(**counts)
        names = [f"{kind}:{index}" for kind, hosts in cluster.items() for index in range(len(hosts))]
        return cluster, {name: self.start_task(cluster, name, steps) for name in names}

    def is_over(self, process, code, *patterns):
        """Waits for the end of a process, which has said all that."""
        process.process.wait(timeout=jobs.TIMEOUT)
        self.assertEqual(process.process.returncode, code, self.story())
        for pattern in patterns:
            self.assertRegex(process.errors(), re.compile(pattern, re.MULTILINE), self.story())

    def end(self, chief, *others):
        """Lets a job make some more steps, ends it, and returns how many it has made."""
        known = chief.errors().count("\nstep ")
        chief.until(lambda: chief.errors().count("\nstep ") >= known + 2, "more steps")
        chief.send(signal.SIGUSR1)
        for process in (chief, *others):
            self.is_over(process, 0)
        return int(re.findall(r"^step (\d+)$", chief.errors(), re.MULTILINE)[-1])

    def counted(self, chief):
        return int(re.search(r"^counted (\d+)$", chief.errors(), re.MULTILINE)[1])

    def test_all_steps_are_made_once_where_no_process_is_lost(self):
        _, job = self.begin(200)
        for process in job.values():
            self.is_over(process, 0)
        self.assertEqual(self.counted(job["chief:0"]), 200)

    def test_without_a_chief_of_its_own_worker_0_leads_and_works(self):
        _, job = self.begin(200, counts={"ps": 1, "worker": 2})
        for process in job.values():
            self.is_over(process, 0)
        self.assertIn("worker 0 begins", job["worker:0"].errors())

    def test_a_killed_worker_is_made_up_for_and_serves_again_when_it_is_started_again(self):
        cluster, job = self.begin()
        job["worker:1"].says("worker 1 begins")
        job["worker:1"].send(signal.SIGKILL)
        job["chief:0"].says(r"worker 1 is gone \(worker:1 ")
        back = self.restart(cluster, "worker:1")
        job["chief:0"].says("worker 1 is back")
        back.says("worker 1 begins")  # what it has of its own was made anew
        steps = self.end(job["chief:0"], job["ps:0"], job["worker:0"], back)
        self.assertGreaterEqual(self.counted(job["chief:0"]), steps)

    def test_a_job_waits_while_all_workers_are_gone(self):
        cluster, job = self.begin(counts={"chief": 1, "ps": 1, "worker": 1})
        job["worker:0"].says("worker 0 begins")
        job["worker:0"].send(signal.SIGKILL)
        job["chief:0"].says("worker 0 is gone")
        self.end(job["chief:0"], job["ps:0"], self.restart(cluster, "worker:0"))

    def test_a_worker_that_is_asked_to_stop_and_knows_nothing_of_it_is_made_up_for(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(how=how.name):
                _, job = self.begin()
                job["worker:1"].says("worker 1 begins")  # else none misses it
                job["worker:1"].send(how)
                job["chief:0"].says(r"worker 1 is gone \(worker:1 ")
                self.is_over(job["worker:1"], -how)
                self.end(job["chief:0"], job["ps:0"], job["worker:0"])

    def lose_the_only_ps(self, how):
        """The parameter server, after a job that it was lost to has ended."""
        _, job = self.begin()
        job["chief:0"].says("^step 50$")
        job["ps:0"].send(how)
        self.is_over(job["chief:0"], 4, "^('step' failed at worker [01]: .*)?ps:0")
        for name in ("worker:0", "worker:1"):
            self.is_over(job[name], 0)
        return job["ps:0"]

    def test_a_parameter_server_that_is_killed_or_asked_to_stop_ends_the_job_and_is_named(self):
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(how=how.name):
                self.is_over(self.lose_the_only_ps(how), -how)

    def test_a_parameter_server_that_is_frozen_ends_the_job_and_itself_when_it_goes_on(self):
        ps = self.lose_the_only_ps(signal.SIGSTOP)
        ps.send(signal.SIGCONT)
        ps.process.wait(timeout=jobs.TIMEOUT)
        # A chief that has heard of the loss from a worker, before it missed the server itself, has said that all is over.
        self.assertIn(ps.process.returncode, (0, 4), self.story())

    def test_a_parameter_server_that_is_lost_ends_a_job_that_waits_for_its_workers(self):
        _, job = self.begin(counts={"chief": 1, "ps": 1, "worker": 1})
        job["chief:0"].says("^step 50$")
        job["worker:0"].send(signal.SIGKILL)
        job["chief:0"].says("worker 0 is gone")
        job["ps:0"].send(signal.SIGKILL)
        self.is_over(job["chief:0"], 4, "^ps:0 .*variables that no other process holds went with it")

    def all_is_there_once(self, job, *lost):
        steps = self.end(*(process for name, process in job.items() if name not in lost))
        self.assertRegex(job["chief:0"].errors(), re.compile(f"^counted {steps}$\n^trained {steps}$", re.MULTILINE))

    def says_both(self, process, known, pattern):
        """Waits until it has said that of both variables, beyond what is known."""
        for name in ("counter", "trained"):
            line = re.compile(pattern % name, re.MULTILINE)
            process.until(lambda: line.search(process.errors(), known), line.pattern)

    def test_where_owners_are_replicated_a_parameter_server_that_is_lost_loses_nothing(self):
        self.holders = 2
        for lost, how in (("ps:0", signal.SIGKILL), ("ps:1", signal.SIGKILL), ("ps:0", signal.SIGSTOP)):
            with self.subTest(lost=lost, how=how.name):
                _, job = self.begin(counts=TWO_SERVERS)
                job["chief:0"].says("^step 50$")
                time.sleep(random.uniform(0, 0.3))
                job[lost].send(how)
                job["chief:0"].says(f"{lost}.* held by mirrors now; held once from now on: .*; the job goes on")
                self.all_is_there_once(job, lost)
                if how == signal.SIGSTOP:
                    job[lost].send(signal.SIGCONT)
                    self.is_over(job[lost], 4)

    def test_where_owners_are_replicated_one_that_is_started_again_holds_all_when_the_other_is_lost(self):
        self.holders = 2
        cluster, job = self.begin(counts=TWO_SERVERS)
        chief = job["chief:0"]
        chief.says("^step 50$")
        for lost in ("ps:0", "ps:1", "ps:0"):
            known = len(chief.errors())
            job[lost].send(signal.SIGKILL)
            self.says_both(chief, known, f"{lost}.*held once from now on: .*'%s'.*; the job goes on$")
            job[lost] = self.restart(cluster, lost)
            self.says_both(chief, known, "^held twice again: .*'%s'")
        self.all_is_there_once(job)

    def test_a_chief_that_is_killed_or_asked_to_stop_is_named_by_all(self):
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            with self.subTest(how=how.name):
                _, job = self.begin()
                job["chief:0"].says("^step 50$")
                job["chief:0"].send(how)
                self.is_over(job.pop("chief:0"), -how)
                for process in job.values():
                    self.is_over(process, 4, "chief:0")

    def test_a_chief_that_was_frozen_until_all_had_given_it_up_ends_when_it_goes_on(self):
        _, job = self.begin()
        job["chief:0"].says("^step 50$")
        job["chief:0"].send(signal.SIGSTOP)
        for name in ("ps:0", "worker:0", "worker:1"):
            self.is_over(job[name], 4, "chief:0")
        job["chief:0"].send(signal.SIGCONT)
        self.is_over(job["chief:0"], 4, "ps:0")


if __name__ == "__main__":
    unittest.main(testRunner=jobs.SideBySide())
