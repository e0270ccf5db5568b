# SPDX-License-Identifier: Apache-2.0
# Goal: a trainer of one's own is a job like `troupe train`: files, options, refusals, signals, processes, restarts.
# Method: runs one in empty folders, as its user would.
# Usage: job_test.py PATH/TO/troupe PATH/TO/trainer PATH/TO/parted_job
import csv
import json
import os
import re
import signal
import subprocess
import sys
import unittest
import urllib.request

from own_folder import FolderTest

TROUPE, TRAINER, PARTED = (os.path.abspath(path) for path in sys.argv[1:4])
PROGRAM = os.path.basename(TRAINER)
VIRTUAL = ["--world", "virtual"]
PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("TROUPE_", "TF_CONFIG", "SLURM_"))}


class Trainer(FolderTest):
    def run_in_folder(self, *command):
        return subprocess.run(command, cwd=self.folder, text=True, capture_output=True, timeout=100, env=PLAIN)

    def trained(self, *options, run="run"):
        result = self.run_in_folder(TRAINER, "--run-dir", run, *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def refused(self, line, *options):
        before = sorted(self.folder.rglob("*"))
        result = self.run_in_folder(TRAINER, *options)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
        self.assertTrue(result.stderr.startswith(PROGRAM + ": "), result.stderr)
        self.assertIn(line, result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def table(self, name, run="run"):
        with open(self.folder / run / name, newline="") as file:
            return list(csv.DictReader(file))

    def files(self, run):
        """Names of what a run has left; those that hold a time or a step without it."""
        return {re.sub(r"\d{4,}.*|-\d+", "", str(path.relative_to(self.folder / run)))
                for path in (self.folder / run).rglob("*")}

    def test_leaves_what_troupe_train_leaves(self):
        said = self.trained()
        self.assertIn("after 40 steps: 3.000\n", said.stdout)
        for word in ("accepted", "held-out data, loss", "this model", "plots: run/loss.svg run/steps.svg"):
            self.assertIn(word, said.stdout)
        (self.folder / "text").write_text("the quick brown fox jumps over the lazy dog; " * 60)
        theirs = self.run_in_folder(TROUPE, "train", "--text", "text", "--steps", "40", "--run-dir", "theirs")
        self.assertEqual(theirs.returncode, 0, theirs.stderr)
        self.assertEqual(self.files("run"), self.files("theirs"))
        self.assertEqual([int(line["step"]) for line in self.table("metrics.csv")], list(range(1, 41)))
        accepted = [line for line in self.table("ledger.csv") if line["verdict"] == "accepted"]
        self.assertGreaterEqual(len(accepted), 3 * 40)  # those that come as a step closes count, too

    def test_has_the_options_of_troupe_train_but_those_of_what_it_learns(self):
        def options_of(*command):
            groups = re.split(r"\n(?=\S.*:\n)", self.run_in_folder(*command, "--help").stdout)
            found = {re.split(r":| \(", group)[0]: set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", group, re.M)) for group in groups}
            return {group: options for group, options in found.items() if options}

        ours, theirs = options_of(TRAINER), options_of(TROUPE, "train")
        for group in theirs.keys() - {"What is learnt", "Images", "Text", "Model", "Training"}:
            self.assertEqual(ours.get(group), theirs[group], group)
        self.assertLessEqual({"--steps", "--seed", "--evaluate-every"}, ours["Training"])
        self.assertEqual(ours["Options of " + PROGRAM], {"--sought"})

    def test_goes_on_with_its_own_options(self):
        self.trained("--sought", "5", "--steps", "10", "--checkpoint-every", "5")
        said = self.trained("--resume", "run", "--steps", "30", run="more")
        self.assertIn("resume    run from step 10", said.stderr)
        self.assertIn("after 30 steps: 5.000\n", said.stdout)
        self.assertEqual(int(self.table("metrics.csv", "more")[0]["step"]), 11)
        self.refused("that run has made all its 10 steps; ask for more with --steps", "--resume", "run", "--run-dir", "other")
        self.refused("--config and --resume exclude each other", "--resume", "run", "--config", "run/config.toml")

    def test_ends_as_one_that_was_not_interrupted_under_every_strategy(self):
        for strategy in ("parameter_server", "mirrored", "multi_worker_mirrored"):
            alike = [*VIRTUAL, "--strategy", strategy, "--sought", "2"]
            for steps, run in (("10", "half"), ("20", "whole")):
                self.trained(*alike, "--steps", steps, run=f"{run}-{strategy}")
            self.trained("--resume", f"half-{strategy}", "--steps", "20", run=f"rest-{strategy}")
            last = [self.table("metrics.csv", f"{run}-{strategy}")[-1]["loss"] for run in ("whole", "rest")]
            self.assertEqual(last[0], last[1])

    def test_refuses_in_one_line_and_writes_nothing(self):
        self.refused("--steps must be a whole number", "--steps", "many")
        self.refused("unknown option '--sough'; the nearest known one is '--sought'", "--sough", "4")
        self.refused("--sought must be a number", "--sought", "x")
        self.refused("--aggregate 9 can never be reached by 4 replicas", "--aggregate", "9", "--policy", "cancel")
        self.refused("--compute has no meaning in real time", "--compute", "2")
        self.refused("--arithmetic has no meaning in real time", "--arithmetic", "skipped")
        self.refused("speaks of replica 5, but there are 4: 0 to 3", *VIRTUAL, "--compute", "1 slow={5}*3")
        self.refused("--run-dir: /dev/null/x cannot be made", "--run-dir", "/dev/null/x")

    def test_says_so_where_its_output_cannot_be_written(self):
        with open("/dev/full", "w") as full:
            result = subprocess.run([TRAINER, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
            trained = subprocess.run([TRAINER, "--run-dir", "run"], cwd=self.folder, stdout=subprocess.PIPE,
                                     stderr=full, timeout=100, env=PLAIN)
        self.assertEqual((result.returncode, trained.returncode), (1, 0))
        self.assertEqual(result.stderr,
                         f"{PROGRAM}: cannot write to standard output: No space left on device\n")

    def test_virtual_time_takes_as_long_as_it_is_told_and_is_replayed(self):
        drawn = [*VIRTUAL, "--compute", "lognormal(1, 0.3) slow={3}*3", "--policy", "latest_token", "--steps", "200"]
        for run, more in (("computed", []), ("again", []), ("waited", ["--arithmetic", "skipped"])):
            self.trained(*drawn, *more, run=run)
        for name in ("metrics.csv", "ledger.csv", "timeline.json"):
            self.assertEqual(*((self.folder / run / name).read_bytes() for run in ("computed", "again")))
        times = {run: [line["step_seconds"] for line in self.table("metrics.csv", run)] for run in ("computed", "waited")}
        self.assertEqual(times["computed"], times["waited"])
        losses = {line["loss"] for line in self.table("metrics.csv", "waited")}
        self.assertEqual(len(losses), 1)  # none is reported
        simulated = self.run_in_folder(TROUPE, "sim", "--replicas", "4", "--aggregate", "3", "--policy", "latest_token",
                                       "--compute", drawn[3], "--steps", "200", "--seed", "1", "--steps-csv", "sim.csv")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        with open(self.folder / "sim.csv", newline="") as file:
            self.assertEqual([line["step_seconds"] for line in csv.DictReader(file)], times["computed"])
        replayed = self.run_in_folder(TROUPE, "sim", "replay", "computed", "--aggregate", "4")
        self.assertEqual(replayed.returncode, 0, replayed.stderr)
        self.assertIn("200 steps, 4 replicas, 3 gradients a step, latest_token", replayed.stdout)

    def started(self, *options):
        """A trainer that goes on until it is ended, and what it said before its first step."""
        command = [TRAINER, "--steps", "100000000", "--run-dir", "run", *options]
        process = subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=PLAIN)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        said = ""
        while not (line := process.stderr.readline()).startswith("step"):
            self.assertNotEqual(line, "", said)
            said += line
        return process, said

    def test_has_a_page_while_it_runs(self):
        _, said = self.started("--metrics-port", "0")
        with urllib.request.urlopen(re.search(r"^page +(\S+)$", said, re.M)[1], timeout=60) as answer:
            page = answer.read().decode()
        run = json.loads(re.search(r'id="run">(.*)</script>', page)[1])
        self.assertEqual((run["name"], run["is_live"], run["progress"]["step_count"]), ("run", True, 100000000))

    def test_a_signal_ends_it_with_its_summary(self):
        process, _ = self.started()
        process.send_signal(signal.SIGTERM)
        output, complaints = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("asked to stop after step", complaints)
        self.assertIn("accepted", output)

    def launched(self, *command):
        result = self.run_in_folder(TROUPE, "launch", *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_goes_on_if_its_evaluation_throws(self):
        said = self.trained(*VIRTUAL, "--sought", "-1", "--evaluate-every", "20")
        self.assertIn("after 40 steps: -1.000\n", said.stdout)
        self.assertIn(PROGRAM + ": the held-out data were not evaluated: no examples below 0\n", said.stderr)
        self.assertEqual(self.table("evaluations.csv")[-1]["step"], "40")
        self.assertNotIn("has diverged", said.stderr)

    def test_says_that_it_has_diverged_if_its_evaluation_is_no_number(self):
        said = self.trained(*VIRTUAL, "--sought", "3e38")  # twice that distance is no float
        self.assertIn(PROGRAM + ": the training has diverged: the loss of the evaluation at step 40 is no finite", said.stderr)

    def test_is_a_job_of_many_processes_with_an_evaluator(self):
        said = self.launched("-n", "2", "--ps", "1", "--evaluator", "--", TRAINER, "--run-dir", "run", "--checkpoint-every", "10",
                             "--keep-checkpoints", "99")
        self.assertRegex(said.stderr, r"\[evaluator:0\] step 40  held-out data 0\.000")
        self.assertEqual(int(self.table("eval/evaluations.csv")[-1]["step"]), 40)
        self.assertEqual(int(self.table("metrics.csv")[-1]["step"]), 40)

    def test_the_last_evaluation_has_the_parts_of_a_variable_that_other_processes_hold(self):
        for every in ("0", "3", "5"):
            self.launched("-n", "2", "--", PARTED, "--strategy", "multi_worker_mirrored", "--evaluate-every", every, "--run-dir",
                          f"run-{every}")
            last = self.table("evaluations.csv", f"run-{every}")[-1]
            self.assertEqual((last["step"], float(last["loss"])), ("10", 40))  # of four replicas

    def test_processes_that_were_told_otherwise_are_refused(self):
        for strategy in ("parameter_server", "multi_worker_mirrored"):
            first = f"mkdir {strategy} 2>/dev/null && set -- --sought 4"
            other = f'{first}; exec "{TRAINER}" --strategy {strategy} --run-dir run "$@"'
            result = self.run_in_folder(TROUPE, "launch", "-n", "2", "--", "sh", "-c", other)
            self.assertNotEqual(result.returncode, 0)
            self.assertIn("sought = 4", result.stderr)

    def test_a_checkpoint_that_does_not_fit_is_to_blame_in_a_cluster_too(self):
        self.trained("--steps", "10", "--checkpoint-every", "5")
        told = f'"{TRAINER}" --resume run --run-dir more --steps 30 --seed 2; echo "code $?" >&2'
        said = self.launched("-n", "2", "--", "sh", "-c", told)
        self.assertRegex(said.stderr, r"\[worker:0\] .* is of a world with seed 1, this one has 2\n")
        self.assertRegex(said.stderr, r"\[worker:0\] code 6\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
