# SPDX-License-Identifier: Apache-2.0
# Goal: the language model trains alike under every strategy, and where replicas meet over processes, to the same bits
# whatever their split; what happens to a process happens to the job.
# Method: real processes on this machine.  Usage: meeting_jobs_test.py PATH/TO/troupe
import csv
import itertools
import os
import shutil
import signal
import unittest

from job_processes import (ALL_FOUR, FOR_EVER, OPEN_MPI, PLAIN, SMALL, TROUPE, Job, Process, SideBySide, addresses,
                           free_ports, process_of)

MEETING = SMALL + "--strategy multi_worker_mirrored".split()
ORDERS = [("worker:1", "worker:0"), ("worker:0", "worker:1")]


class Meeting(Job):
    def launch(self, run, processes, *options, launcher=()):
        command = [TROUPE, "launch", "-n", str(processes), *launcher, "--", TROUPE, "train", *options, "--run-dir", run]
        return Process(self, run, command, PLAIN)

    def table(self, run, name):
        with open(self.folder / run / name, newline="") as lines:
            return list(csv.DictReader(lines))

    def losses(self, run):
        return [float(line["loss"]) for line in self.table(run, "metrics.csv")]


class Agreement(Meeting):
    def test_replicas_in_one_process_in_two_and_in_four_come_to_the_same_bits(self):
        options = MEETING + ["--steps", "60"]
        alone = self.alone(*options)
        self.launch("two", 2, *options).ends(0)
        self.assertEqual(self.trained("two"), alone)
        for process in self.start_all(addresses(worker=4), *options).values():
            process.ends(0)
        self.assertEqual(self.trained(), alone)
        self.assertEqual(self.losses("run"), self.losses("alone"))
        command = [TROUPE, "train", *SMALL, "--strategy", "mirrored", "--steps", "60", "--run-dir", "mirrored"]
        Process(self, "mirrored", command, PLAIN).ends(0)
        self.assertEqual(self.trained("mirrored"), alone)

    def test_a_chief_of_its_own_is_one_of_them(self):
        options = MEETING + ["--steps", "60"]
        for process in self.start_all(addresses(chief=1, worker=1), *options).values():
            process.ends(0)
        self.assertEqual(self.trained(), self.alone(*options))

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_open_mpi_starts_them(self):
        options = MEETING + ["--steps", "60"]
        command = ["mpirun", "--oversubscribe", "-np", "2", TROUPE, "train", *options, "--run-dir", "run", "--port-base",
                   str(free_ports(2)[0])]
        Process(self, "mpirun", command, {**PLAIN, **OPEN_MPI}).ends(0)
        self.assertEqual(self.trained(), self.alone(*options))

    def test_the_loss_goes_down_as_that_of_a_parameter_server_does(self):
        self.alone(*ALL_FOUR, "--steps", "300")
        self.launch("run", 2, *MEETING, "--steps", "300").ends(0)
        served, met = self.losses("alone"), self.losses("run")
        self.assertEqual(met[0], served[0])  # the same variables, batches and dropout
        self.assertAlmostEqual(sum(met[-50:]), sum(served[-50:]), delta=0.05 * sum(served[-50:]))
        self.assertLess(met[-1], met[0] / 2)

    def test_a_ring_adds_in_an_order_of_its_own_the_same_everywhere_and_trains_as_well(self):
        options = MEETING + ["--steps", "60"]
        self.launch("run", 2, *options, "--communication", "ring", "--check-replicas", "7").ends(0)
        self.alone(*options)
        self.assertEqual(self.losses("run")[0], self.losses("alone")[0])
        self.assertAlmostEqual(self.losses("run")[-1], self.losses("alone")[-1], delta=0.05)
        self.assertIn('communication = "ring"', (self.folder / "run" / "config.toml").read_text())

    def test_it_leaves_what_every_run_leaves_and_drops_no_gradient(self):
        options = MEETING + ["--steps", "40", "--evaluate-every", "10"]
        process = self.launch("run", 2, *options)
        process.ends(0)
        self.assertRegex(process.errors(), r"\[worker:0\] job +4 replicas, 4 gradients an update, strategy multi_worker_mirr")
        self.assertRegex(process.errors(), r"\[worker:0\] step 40/40  loss .* live 4/4  0 dropped")
        evaluated = [int(line["step"]) for line in self.table("run", "evaluations.csv")]
        self.assertEqual(evaluated, [10, 20, 30, 40])
        self.assertEqual([int(line["accepted"]) for line in self.table("run", "metrics.csv")], [4] * 40)
        names = {path.name for path in (self.folder / "run").iterdir()}
        self.assertLessEqual({"config.toml", "ledger.csv", "timeline.json", "checkpoints"}, names)
        replayed = [TROUPE, "sim", "replay", "run", "--aggregate", "3", "--policy", "latest_token"]
        Process(self, "replay", replayed, PLAIN).process.wait()
        self.assertEqual(self.processes[-1].process.returncode, 0, self.story())


    def test_a_straggler_holds_up_every_step_in_virtual_time_to_the_tenth_of_a_second(self):
        command = [TROUPE, "train", *SMALL, "--strategy", "mirrored", "--world", "virtual", "--steps", "20", "--slow", "3=5",
                   "--run-dir", "run"]
        Process(self, "virtual", command, PLAIN).ends(0)
        self.assertEqual({float(line["step_seconds"]) for line in self.table("run", "metrics.csv")}, {0.5})
        held_up = [float(line["held_up_seconds"]) for line in self.table("run", "replicas.csv")]
        self.assertEqual(held_up, [0, 0, 0, 24])  # three waited for 0.4 s, twenty times


class Resuming(Meeting):
    def test_a_job_goes_on_in_another_number_of_processes(self):
        options = MEETING + "--learning-rate-decay none".split()
        self.launch("first", 2, *options, "--steps", "30").ends(0)
        self.launch("second", 4, "--resume", "first", "--steps", "60").ends(0)
        self.assertEqual(self.trained("second"), self.alone(*options, "--steps", "60"))

    def test_only_the_first_process_needs_the_checkpoint(self):
        options = MEETING + "--learning-rate-decay none".split()
        self.launch("first", 2, *options, "--steps", "30").ends(0)
        cluster = addresses(worker=2)
        chief = self.start(cluster, "worker:0", "--resume", "first", "--steps", "60")
        other = self.start(cluster, "worker:1", *options, "--steps", "60")
        chief.ends(0)
        other.ends(0)
        self.assertEqual(self.trained(), self.alone(*options, "--steps", "60"))

    def test_a_job_goes_on_under_another_strategy(self):
        command = [TROUPE, "train", "--resume", "first", "--steps", "60"]
        self.launch("first", 2, *MEETING, "--steps", "30").ends(0)
        for strategy in ("parameter_server", "mirrored"):
            with self.subTest(strategy=strategy):
                Process(self, strategy, [*command, "--strategy", strategy, "--run-dir", strategy], PLAIN).ends(0)
                self.assertEqual(self.trained(strategy)[0], "checkpoint-60")
        again = ["--resume", "parameter_server", "--strategy", "multi_worker_mirrored", "--steps", "90"]
        self.launch("met again", 2, *again).ends(0)
        self.assertEqual(self.trained("met again")[0], "checkpoint-90")

    def test_ctrl_c_ends_all_after_the_same_step_with_a_checkpoint(self):
        process = self.launch("run", 2, *MEETING, *FOR_EVER)
        process.says(r"\] step ")
        process.send(signal.SIGINT)
        process.ends(130)
        name, _ = self.trained()
        step = name.split("-")[1]
        for worker in (0, 1):
            self.assertRegex(process.errors(), rf"\[worker:{worker}\] troupe train: asked to stop.* after step {step} of")

    def test_a_signal_to_one_process_ends_all_after_the_same_step(self):
        for (asked, other), how in itertools.product(ORDERS, (signal.SIGTERM, signal.SIGINT)):
            with self.subTest(asked=asked, how=how.name):
                run = f"{asked}-{how.name}"
                job = self.start_all(addresses(worker=2), *MEETING, *FOR_EVER, "--run-dir", run)
                job["worker:0"].says("^step ")
                job[asked].send(how)
                after = job[asked].ends(128 + how, "asked to stop after step").split("after step")[1]
                job[other].ends(0, f"asked to stop by {asked} after step{after}$")
                self.assertEqual(self.trained(run)[0], f"checkpoint-{after.split()[0]}")

    def test_a_job_that_has_lost_a_process_is_started_again_from_what_was_saved(self):
        for victim in ("worker:1", "worker:0"):
            with self.subTest(victim=victim):
                run, job_id = victim.replace(":", "-"), f"meeting-{os.getpid()}-{victim[-1]}"
                launcher = ["--restart", "3", "--job-id", job_id]
                job = self.launch(run, 2, *MEETING, *"--steps 3000 --checkpoint-every 50".split(), launcher=launcher)
                job.until(lambda: list(self.folder.glob(f"{run}/checkpoints/*.safetensors")), "a checkpoint")
                os.kill(process_of(job_id, victim), signal.SIGKILL)
                job.says(rf"\[worker:0\] resume    {run} from step \d+")
                job.ends(0)
                self.assertEqual(self.trained(f"{run}-2")[0], "checkpoint-3000")


class Loss(Meeting):
    def test_a_killed_process_ends_all_others_which_name_it(self):
        for victim, other in ORDERS:
            with self.subTest(victim=victim):
                job = self.start_all(addresses(worker=2), *MEETING, *FOR_EVER, "--run-dir", victim)
                job["worker:0"].says("^step ")
                job[victim].send(signal.SIGKILL)
                job[other].ends(4, victim)

    def test_a_process_that_hangs_ends_the_job_when_the_deadline_is_over(self):
        options = [*MEETING, *FOR_EVER, "--deadline", "60", "--run-dir"]
        jobs = [self.start_all(addresses(worker=2), *options, victim) for victim, _ in ORDERS]
        for job, (victim, _) in zip(jobs, ORDERS):
            job["worker:0"].says("^step ")
            job[victim].send(signal.SIGSTOP)
        for job, (victim, other) in zip(jobs, ORDERS):
            with self.subTest(victim=victim):
                job[other].ends(4, f"{victim}.*nothing was heard of it")
                job[victim].send(signal.SIGCONT)
                job[victim].ends(4, other)


class Refused(Meeting):
    def test_options_that_mean_nothing_there_are_named(self):
        meaningless = ["--aggregate 3", "--policy cancel", "--backups dynamic", "--curvature 0.1", "--initial-tokens 3",
                       "--slack 1", "--on-loss stop", "--min-replicas 2", "--rejoin-timeout 3"]
        for strategy, option in itertools.product(("mirrored", "multi_worker_mirrored"), meaningless):
            with self.subTest(strategy=strategy, option=option):
                command = [TROUPE, "train", *SMALL, "--strategy", strategy, *option.split()]
                Process(self, option, command, PLAIN).ends(2, f"{option.split()[0]} has no meaning under strategy {strategy}")

    def test_options_of_processes_that_meet_have_no_meaning_where_they_do_not(self):
        for strategy in ("mirrored", "parameter_server"):
            for option, value in (("--communication", "ring"), ("--check-replicas", "5")):
                with self.subTest(strategy=strategy, option=option):
                    command = [TROUPE, "train", *SMALL, "--strategy", strategy, option, value]
                    Process(self, strategy + option, command, PLAIN).ends(2, f"{option} has no meaning under strategy {strategy}")

    def test_nccl_where_there_is_no_gpu_is_refused_before_anything_is_written(self):
        for device, why in (("cpu", "--communication nccl adds up gradients on GPUs"), ("gpu:99", "--device gpu:99: ")):
            with self.subTest(device=device):
                cluster = addresses(worker=2)
                process = self.start(cluster, "worker:0", *MEETING, "--communication", "nccl", "--device", device)
                process.ends(2, why)
                self.assertFalse((self.folder / "run").exists())

    def test_clusters_that_a_strategy_has_no_use_for_are_named(self):
        for cluster, strategy, why in (({"worker": 2}, "mirrored", "is for one process"),
                                       ({"ps": 1, "worker": 2}, "multi_worker_mirrored", "no use for parameter servers")):
            with self.subTest(strategy=strategy):
                self.start(addresses(**cluster), "worker:0", *SMALL, "--strategy", strategy).ends(2, why)

    def test_a_process_with_other_options_is_named_and_none_begins(self):
        for option, value in (("batch", "9"), ("seed", "7")):
            with self.subTest(option=option):
                cluster = addresses(worker=2)
                job = [self.start(cluster, "worker:0", *MEETING),
                       self.start(cluster, "worker:1", *MEETING, f"--{option}", value)]
                for process in job:
                    process.ends(3, rf"worker:1 has {option} = {value}, worker:0 has {option} = \d+; .*same options")
                self.assertFalse((self.folder / "run").exists())

    def test_processes_that_talk_in_other_ways_are_named_and_none_begins(self):
        cluster = addresses(worker=2)
        job = [self.start(cluster, "worker:0", *MEETING),
               self.start(cluster, "worker:1", *MEETING, "--communication", "ring")]
        for process in job:
            line = process.ends(3, "worker:0 .*give all processes the same communication")
            self.assertRegex(line, "in any order.* in fixed order|in fixed order.* in any order")
        self.assertFalse((self.folder / "run").exists())

    def test_a_process_that_never_starts_is_named_after_the_deadline(self):
        for missing, other in ORDERS:
            with self.subTest(missing=missing):
                self.start(addresses(worker=2), other, *MEETING, "--start-deadline", "1").ends(3, missing)
                self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
