# SPDX-License-Identifier: Apache-2.0
# Goal: where owners are replicated, a job that loses a parameter server comes to the same bits as one that does not.
# Method: real processes on this machine, one of which is killed or frozen; the same job in one process.
# Usage: owners_test.py PATH/TO/troupe
import csv
import os
import random
import signal
import time
import unittest

from job_processes import (A_BACKUP, ALL_FOUR, FOR_EVER, PLAIN, SMALL, TROUPE, WATCHED, Job, Process, SideBySide, addresses,
                           process_of)

REPLICATED = ["--replicate-owners", "2"]
STEPS = ["--steps", "1500"]
SAME_RATE = [*ALL_FOUR, "--learning-rate-decay", "none"]  # however many steps there are to be
UNTIL_STOPPED = [*SAME_RATE, *FOR_EVER, *WATCHED, *REPLICATED]


class Owners(Job):
    def lose(self, lost, number, **counts):
        """A job that loses a task in its midst, and has to go on to a good end."""
        job = self.start_all(addresses(**counts), *UNTIL_STOPPED)
        job["worker:0"].says("^step ")
        time.sleep(random.uniform(0, 0.5))
        job[lost].send(number)
        job["worker:0"].says(f"{lost}.* held once from now on: .*; the job goes on")
        self.stop(job["worker:0"], *(process for name, process in job.items() if name not in (lost, "worker:0")))
        return job

    def stop(self, leader, *others, task=""):
        """Lets a job make some more steps, ends it, and compares it with one of one process."""
        leader.makes_steps(100, task)
        leader.send(signal.SIGINT)
        leader.ends(128 + signal.SIGINT)
        for process in others:
            process.ends(0)
        name, trained = self.trained()
        self.assertEqual((name, trained), self.alone(*SAME_RATE, "--steps", name.split("-")[1]))

    def test_a_ps_that_is_killed_loses_nothing(self):
        self.lose("ps:0", signal.SIGKILL, ps=2, worker=2)

    def test_one_of_three_that_is_killed_loses_nothing(self):
        self.lose("ps:2", signal.SIGKILL, ps=3, worker=4)

    def test_a_ps_that_is_frozen_loses_nothing_and_hears_that_it_is_given_up(self):
        job = self.lose("ps:1", signal.SIGSTOP, ps=2, worker=2)
        job["ps:1"].send(signal.SIGCONT)
        job["ps:1"].ends(4)

    def test_with_a_backup_the_job_goes_on_too(self):
        job = self.start_all(addresses(ps=2, worker=4), *A_BACKUP, *FOR_EVER, *WATCHED, *REPLICATED)
        job["worker:0"].says("^step ")
        job["ps:1"].send(signal.SIGKILL)
        job["worker:0"].says("the job goes on")
        job["worker:3"].send(signal.SIGKILL)
        job["worker:0"].says("lost replica 3.*; the job goes on with 3 of 4 replicas")
        job["worker:0"].makes_steps(100)
        job["worker:0"].send(signal.SIGINT)
        job["worker:0"].ends(130)

    def test_where_training_is_asynchronous_the_job_goes_on_too(self):
        for policy in (["ssp", "--slack", "2"], ["k_async", "--aggregate", "3"]):
            with self.subTest(policy=policy[0]):
                steps = ["--steps", "6000" if policy[0] == "ssp" else "2000"]
                job = self.start_all(addresses(ps=2, worker=2), *SMALL, "--policy", *policy, *steps, *REPLICATED,
                                     "--run-dir", policy[0])
                job["worker:0"].says("^step ")
                job["ps:1"].send(signal.SIGKILL)
                job["worker:0"].says("ps:1.* held once from now on: .*; the job goes on")
                for name, process in job.items():
                    if name != "ps:1":
                        process.ends(0)
                self.assertEqual(self.trained(policy[0])[0], f"checkpoint-{steps[1]}")

    def test_a_worker_that_is_killed_after_a_ps_takes_part_again_when_it_is_started_again(self):
        for lost in ("ps:0", "ps:1"):
            with self.subTest(lost=lost):
                run = lost.replace(":", "-")
                options = [*UNTIL_STOPPED, "--rejoin-timeout", "60", "--run-dir", run]
                cluster = addresses(ps=2, worker=2)
                job = self.start_all(cluster, *options)
                job["worker:0"].says("^step ")
                job[lost].send(signal.SIGKILL)
                job["worker:0"].says(f"{lost}.* held once from now on: .*; the job goes on")
                job["worker:1"].send(signal.SIGKILL)
                job["worker:0"].says("lost replica [23]")
                time.sleep(0.2)  # lives of a process are told apart by tenths of a second
                job["worker:1"] = self.start(cluster, "worker:1", *options)
                job["worker:0"].makes_steps(100)
                job["worker:0"].send(signal.SIGINT)
                for name, process in job.items():
                    if name != lost:
                        process.ends(128 + signal.SIGINT if name == "worker:0" else 0)
                steps = int(self.trained(run)[0].split("-")[1])
                with open(self.folder / run / "metrics.csv", newline="") as lines:
                    accepted = sum(int(line["accepted"]) for line in csv.DictReader(lines))
                # Of two replicas, two lives may each have given a part of a step's gradients, and are listed both.
                self.assertIn(accepted, range(4 * steps, 4 * steps + 3))

    def lose_in_turn(self, job, kill, start_again):
        """Kills either parameter server, after the one before it has come back and been told what it missed."""
        said = job["worker:0"] if "worker:0" in job else job["launch"]
        for number, lost in enumerate(("ps:0", "ps:1", "ps:0"), 1):
            kill(lost)
            said.says("held once from now on", times=number)
            start_again(lost)
            said.says("held twice again: ", times=number)

    def test_a_ps_that_is_started_again_holds_its_variables_again_and_the_other_may_be_killed(self):
        cluster = addresses(ps=2, worker=2)
        job = self.start_all(cluster, *UNTIL_STOPPED)
        job["worker:0"].says("^step ")

        def kill(lost):
            job[lost].send(signal.SIGKILL)

        def start_again(lost):
            job[lost].process.wait()
            time.sleep(0.1)  # lives of a process are told apart by tenths of a second
            job[lost] = self.start(cluster, lost, *UNTIL_STOPPED)

        self.lose_in_turn(job, kill, start_again)
        self.stop(job.pop("worker:0"), *job.values())

    def test_a_ps_that_is_killed_as_soon_as_it_comes_back_is_not_missed(self):
        cluster = addresses(ps=3, worker=2)
        job = self.start_all(cluster, *UNTIL_STOPPED)
        job["worker:0"].says("^step ")
        job.pop("ps:1").send(signal.SIGKILL)
        job["worker:0"].says("held once from now on")
        for _ in range(3):
            newcomer = self.start(cluster, "ps:1", *UNTIL_STOPPED)
            time.sleep(random.uniform(0.05, 0.6))
            newcomer.send(signal.SIGKILL)
            newcomer.process.wait()
        self.stop(job.pop("worker:0"), *job.values())

    def test_a_launcher_that_spares_parameter_servers_lets_the_job_go_on(self):
        job_id = f"owners-{os.getpid()}"
        command = [TROUPE, "launch", "-n", "2", "--ps", "2", "--spare-ps", "--job-id", job_id, "--",
                   TROUPE, "train", "--run-dir", "run", *ALL_FOUR, *STEPS, *REPLICATED]
        job = Process(self, "launch", command, PLAIN)
        job.says(r"\[worker:0\] step ")
        os.kill(process_of(job_id, "ps:0"), signal.SIGKILL)
        job.says("ps:0 failed: signal 9 .SIGKILL.; it is up to the others whether they go on without it")
        job.ends(0)
        self.assertNotIn("started again", job.errors())
        self.assertEqual(self.trained(), self.alone(*ALL_FOUR, *STEPS))

    def test_a_launcher_with_restarts_starts_them_again(self):
        job_id = f"owners-{os.getpid()}-again"
        command = [TROUPE, "launch", "-n", "2", "--ps", "2", "--spare-ps", "--restart", "3", "--job-id", job_id, "--",
                   TROUPE, "train", "--run-dir", "run", *UNTIL_STOPPED]
        job = Process(self, "launch", command, PLAIN)
        job.says(r"\[worker:0\] step ")
        self.lose_in_turn({"launch": job}, lambda lost: os.kill(process_of(job_id, lost), signal.SIGKILL),
                          lambda lost: job.says(f"{lost} failed: signal 9 .SIGKILL.; it is started again"))
        self.stop(job, task="[worker:0] ")
        self.assertNotIn("all tasks are started again", job.errors())

    def test_the_second_loss_ends_the_job(self):
        job = self.start_all(addresses(ps=2, worker=2), *ALL_FOUR, *FOR_EVER, *REPLICATED)
        job["worker:0"].says("^step ")
        job["ps:0"].send(signal.SIGKILL)
        job["worker:0"].says("the job goes on")
        job["ps:1"].send(signal.SIGKILL)
        for name in ("worker:0", "worker:1"):
            job[name].ends(4, "ps:1")

    def test_too_few_parameter_servers_are_refused(self):
        job = self.start_all(addresses(ps=1, worker=1), *ALL_FOUR, *REPLICATED)
        job["worker:0"].ends(2, "--replicate-owners 2 takes 2 parameter servers or more, but TF_CONFIG names 1")
        job["ps:0"].ends(2)


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
