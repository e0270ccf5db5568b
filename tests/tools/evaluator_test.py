# SPDX-License-Identifier: Apache-2.0
# Goal: an evaluator evaluates what a job saves, ends when the job does, and whatever becomes of it is none of the
# job's business.
# Method: real processes of this machine, some of them killed, frozen or late.
# Usage: evaluator_test.py PATH/TO/troupe
import json
import os
import shutil
import signal
import time
import unittest

from job_processes import ALL_FOUR, FOR_EVER, TIMEOUT, PLAIN, TROUPE, Job, Process, SideBySide, addresses, process_of

SAVED = ["--checkpoint-every", "20", "--keep-checkpoints", "1000"]
SHORT = ALL_FOUR + SAVED + ["--steps", "100"]


class Evaluator(Job):
    def setUp(self):
        super().setUp()
        self.cluster = addresses(chief=1, worker=1)

    def rows(self, run="run"):
        """What the evaluator has written: bits per byte, by step."""
        lines = (self.folder / run / "eval" / "evaluations.csv").read_text().splitlines()
        self.assertEqual(lines[0], "step,seconds,bits_per_byte")
        values = [line.split(",") for line in lines[1:]]
        self.assertEqual([int(value[0]) for value in values], sorted({int(value[0]) for value in values}))
        return {int(step): float(bits) for step, _, bits in values}

    def saved(self, run="run"):
        """The steps that there are checkpoints of: of what comes while the disk is busy, only the last is saved."""
        return sorted(int(path.stem.split("-")[-1]) for path in (self.folder / run / "checkpoints").glob("*.safetensors"))

    def begin(self, *options, **more):
        """The job without its evaluator."""
        return [self.start(self.cluster, task, *options, **more) for task in ("chief:0", "worker:0")]

    def evaluator(self, *options):
        return self.start(self.cluster, "evaluator:0", *options)

    def test_evaluates_every_checkpoint_and_ends_with_the_run(self):
        for process in [*self.begin(*SHORT), self.evaluator(*SHORT)]:
            process.ends(0)
        saved = self.saved()
        self.assertEqual(saved[-1], 100)
        line = self.processes[-1].errors().splitlines()[-1]
        self.assertEqual(line, f"troupe train: the run has ended; {len(saved)} checkpoints evaluated, the last of step 100")
        rows = self.rows()
        self.assertEqual(list(rows), saved)
        # The chief evaluates the same text with the same variables in the end.
        last = (self.folder / "run" / "evaluations.csv").read_text().splitlines()[-1].split(",")
        self.assertEqual((int(last[0]), float(last[2])), (100, rows[100]))
        self.assertTrue(list((self.folder / "run" / "eval").glob("events.out.tfevents.*")))

    def test_beside_a_job_of_one_process(self):
        self.cluster = addresses(worker=1)
        for strategy in ("parameter_server", "mirrored"):
            with self.subTest(strategy=strategy):
                options = [*SHORT[: SHORT.index("--policy")], *SAVED, "--steps", "100", "--strategy", strategy,
                           "--run-dir", strategy]
                self.start({**self.cluster, "evaluator": addresses(evaluator=1)["evaluator"]}, "worker:0", *options).ends(0)
                self.evaluator(*options).ends(0)
                self.assertEqual(list(self.rows(strategy))[-1], 100)

    def test_beside_parameter_servers_that_hold_each_variable_twice(self):
        self.cluster = addresses(chief=1, worker=1, ps=2, evaluator=1)
        for process in self.start_all(self.cluster, *SHORT, "--replicate-owners", "2").values():
            process.ends(0)
        self.assertEqual(list(self.rows()), self.saved())

    def test_comes_late_and_finds_what_is_still_there(self):
        for process in self.begin(*SHORT):
            process.ends(0)
        self.evaluator(*SHORT).ends(0, f"the run has ended; {len(self.saved())} checkpoints")

    def test_waits_for_a_run_that_begins_late(self):
        evaluator = self.evaluator(*SHORT)
        time.sleep(1)
        for process in [*self.begin(*SHORT), evaluator]:
            process.ends(0)

    def test_names_the_process_that_it_has_waited_for_in_vain(self):
        self.evaluator(*SHORT, "--start-deadline", "0.5").ends(
            3, "no run has begun in run: chief 0 .*127.0.0.1:.* has not made that folder within 0.5 s")

    def test_its_death_harms_no_other_task_and_another_one_goes_on(self):
        job = self.begin(*ALL_FOUR, *SAVED, *FOR_EVER)
        first = self.evaluator(*ALL_FOUR, *SAVED, *FOR_EVER)
        first.says("^step ")
        first.send(signal.SIGKILL)
        first.ends(-signal.SIGKILL)
        done = self.rows()
        second = self.evaluator(*ALL_FOUR, *SAVED, *FOR_EVER)
        said = second.says("^step ")
        self.assertGreater(int(said.split()[1]), max(done))
        job[0].send(signal.SIGINT)
        job[0].ends(128 + signal.SIGINT)
        job[1].ends(0)
        second.ends(0, "the run has ended")
        rows = self.rows()
        self.assertEqual(max(rows), int(self.trained()[0].split("-")[1]))
        self.assertEqual({step: rows[step] for step in done}, done)

    def test_frozen_it_harms_no_other_task_and_catches_up(self):
        job = self.begin(*SHORT)
        evaluator = self.evaluator(*SHORT)
        evaluator.says("^evaluates ")
        evaluator.send(signal.SIGSTOP)
        for process in job:
            process.ends(0)
        evaluator.send(signal.SIGCONT)
        evaluator.ends(0)
        self.assertEqual(max(self.rows()), 100)

    def test_a_checkpoint_that_is_removed_before_its_turn_is_left_out(self):
        options = [*ALL_FOUR, "--checkpoint-every", "20", "--keep-checkpoints", "1"]
        job = self.begin(*options, *FOR_EVER)
        evaluator = self.evaluator(*options, *FOR_EVER)
        evaluator.says("^step ")
        evaluator.send(signal.SIGSTOP)
        newest = lambda: max(self.saved(), default=0)
        saved = [newest()]
        for _ in range(3):
            job[0].until(lambda: newest() > saved[-1], "one more checkpoint")
            saved.append(newest())
        job[0].send(signal.SIGINT)
        job[0].ends(128 + signal.SIGINT)
        job[1].ends(0)
        evaluator.send(signal.SIGCONT)
        evaluator.ends(0, f"the run has ended; .* checkpoints evaluated, the last of step {newest()}")
        self.assertNotIn(saved[2], self.rows())
        self.assertIn(newest(), self.rows())

    def test_asked_to_stop_it_stops_alone(self):
        job = self.begin(*ALL_FOUR, *SAVED, *FOR_EVER)
        for how in (signal.SIGTERM, signal.SIGINT):
            evaluator = self.evaluator(*ALL_FOUR, *SAVED, *FOR_EVER)
            evaluator.says("^step ")
            evaluator.send(how)
            evaluator.ends(128 + how, "asked to stop; .* checkpoints evaluated")
        job[0].send(signal.SIGINT)
        job[0].ends(128 + signal.SIGINT)
        job[1].ends(0)

    def test_ends_when_the_chief_is_killed_and_says_so(self):
        options = ALL_FOUR + SAVED + FOR_EVER
        job = self.begin(*options)
        evaluator = self.evaluator(*options, "--deadline", "1")  # a timeout of 12 s
        evaluator.says("^step ")
        job[0].send(signal.SIGKILL)
        job[1].ends(4)
        evaluator.ends(5, "chief 0 .* has left no checkpoint in .* after that of step .* no sign of life for 12 s")

    def test_a_run_that_never_begins_is_not_waited_for(self):
        chief = self.start(self.cluster, "chief:0", *SHORT)
        evaluator = self.evaluator(*SHORT)
        evaluator.until((self.folder / "run" / "eval").exists, "a folder of its own")
        chief.says("^cluster ")  # from then on it ends in good order
        chief.send(signal.SIGINT)
        chief.ends(128 + signal.SIGINT)
        evaluator.ends(3, "given up before it had made a step; chief 0 .* knows why")

    def test_another_text_or_model_is_refused_and_the_job_goes_on(self):
        (self.folder / "other").write_text("another text, " * 200)
        job = self.begin(*SHORT)
        self.evaluator(*SHORT, "--text", "other").ends(6, "trains on another text than other")
        shutil.rmtree(self.folder / "run" / "eval")
        self.evaluator(*SHORT, "--held-out", "0.5").ends(6, "that run trains on .*; give all tasks the same --held-out")
        shutil.rmtree(self.folder / "run" / "eval")
        self.evaluator(*SHORT, "--embedding", "5").ends(6, "is of a perceptron, .*, not of a perceptron, .* embedding 5,")
        for process in job:
            process.ends(0)

    def test_options_that_make_no_sense_are_refused_at_once(self):
        self.evaluator(*ALL_FOUR, "--checkpoint-every", "0").ends(2, "--checkpoint-every 0 makes none")
        config = json.dumps({"cluster": self.cluster, "task": {"type": "evaluator", "index": 0}})
        nameless = Process(self, "nameless", [TROUPE, "train", *SHORT], {**PLAIN, "TF_CONFIG": config})
        nameless.ends(2, "give all tasks the same --run-dir")

    def test_a_run_that_was_stopped_before_its_first_checkpoint_leaves_one(self):
        job = self.begin(*ALL_FOUR, "--checkpoint-every", "100000000", *FOR_EVER)
        evaluator = self.evaluator(*ALL_FOUR, *FOR_EVER)
        job[0].says("^step ")
        job[0].send(signal.SIGINT)
        job[0].ends(128 + signal.SIGINT)
        evaluator.ends(0, "1 checkpoints evaluated")


class Launched(Job):
    def launch(self, *options):
        self.job_id = f"evaluator-{os.getpid()}"
        return Process(self, "launch", [TROUPE, "launch", "-n", "2", "--evaluator", "--job-id", self.job_id, *options], PLAIN)

    def test_the_launcher_names_the_run_and_waits_for_the_evaluator(self):
        self.launch("--", TROUPE, "train", *SHORT).ends(0)
        said = self.processes[0].errors()
        self.assertRegex(said, r"\[evaluator:0\] step 100  held-out text [0-9.]+ bits/byte")
        self.assertTrue((self.folder / "runs" / f"job-{self.job_id}" / "eval" / "evaluations.csv").exists())

    def test_a_killed_evaluator_is_started_again_and_the_job_never_notices(self):
        launch = self.launch("--restart", "1", "--", TROUPE, "train", *ALL_FOUR, *SAVED, *FOR_EVER)
        launch.says(r"evaluator:0\] step ")
        killed = process_of(self.job_id, "evaluator:0")
        os.kill(killed, signal.SIGKILL)
        launch.says("evaluator:0 failed: signal 9 .SIGKILL.; it is started again, 0 restarts are left")
        end = time.monotonic() + TIMEOUT
        while process_of(self.job_id, "evaluator:0") in (None, killed):
            self.assertLess(time.monotonic(), end, self.story())
            time.sleep(0.1)
        launch.send(signal.SIGINT)
        launch.ends(128 + signal.SIGINT)
        self.assertNotIn("all tasks are started again", launch.errors())

    def test_without_restarts_the_others_go_on(self):
        launch = self.launch("--", TROUPE, "train", *ALL_FOUR, *SAVED, "--steps", "3000")
        launch.says(r"evaluator:0\] step ")
        os.kill(process_of(self.job_id, "evaluator:0"), signal.SIGKILL)
        launch.says("evaluator:0 failed: .*; the others go on without it")
        launch.ends(0)


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
