# SPDX-License-Identifier: Apache-2.0
# Goal: `troupe sim` says the same to people and to programs, again and again, and by its exit code.
# Method: runs the command as a user would.  Usage: sim_command_test.py PATH/TO/troupe
import json
import os
import subprocess
import sys
import unittest

from own_folder import FolderTest

TROUPE = os.path.abspath(sys.argv.pop(1))
KEYS = """step_time drop_fraction staleness accepted stale cancelled lost wasted_replica_seconds updates_per_second events
events_per_second virtual_seconds wall_seconds log_hash seed stalled""".split()


class Sim(FolderTest):
    def sim(self, *options):
        return subprocess.run([TROUPE, "sim", *options], cwd=self.folder, text=True, capture_output=True, timeout=100)

    def report(self, *options, code=0):
        result = self.sim("--json", "-", *options)
        self.assertEqual(result.returncode, code, result.stderr)
        return json.loads(result.stdout)

    def test_a_dead_replica_costs_tensorflow_half_its_speed(self):
        plain = ["--replicas", "50", "--aggregate", "49", "--dead", "1", "--compute", "constant(1)", "--steps", "402"]
        report = self.report(*plain, "--warm-up", "2")
        self.assertEqual(report["step_time"]["mean"], 1.5)
        self.assertEqual(report["step_time"]["p50"], 1)
        self.assertEqual(report["step_time"]["max"], 2)
        self.assertEqual(self.report(*plain, "--policy", "latest_token")["step_time"]["mean"], 1)

    def test_a_report_has_all_that_programs_may_rely_on(self):
        report = self.report("--replicas", "4", "--aggregate", "3", "--steps", "50")
        for key in KEYS:
            self.assertIn(key, report)
        self.assertIsNone(report["stalled"])
        self.assertEqual(report["accepted"], 150)
        self.assertEqual(report["staleness"]["histogram"]["0"], 150)
        self.assertEqual(sum(report["staleness"]["histogram"].values()), report["accepted"] + report["stale"])
        self.assertEqual(report["scenario"]["policy"], "tensorflow")

    def test_the_same_seed_gives_the_same_hash_and_another_one_another(self):
        plain = ["--replicas", "8", "--aggregate", "6", "--steps", "200"]
        first, again, other = (self.report(*plain, "--seed", seed) for seed in "112")
        self.assertEqual(first["log_hash"], again["log_hash"])
        self.assertEqual(first["events"], again["events"])
        self.assertNotEqual(first["log_hash"], other["log_hash"])

    def test_asynchronous_gradients_have_an_age(self):
        plain = ["--replicas", "8", "--compute", "exponential(1)", "--steps", "2000", "--policy"]
        report = self.report(*plain, "async")
        self.assertAlmostEqual(report["staleness"]["mean"], 7, delta=0.05)
        self.assertEqual(report["accepted"], 2000)
        self.assertEqual(report["stale"], 0)
        self.assertEqual(self.report(*plain, "ssp", "--slack", "0")["scenario"]["slack"], 0)
        self.assertEqual(self.report(*plain, "k_async", "--aggregate", "8")["staleness"]["mean"], 0)

    def test_the_number_of_backups_may_be_dynamic(self):
        report = self.report("--replicas", "10", "--compute", "lognormal(1, 0.05) slow={4}*9", "--steps", "200",
                             "--policy", "cancel", "--aggregate", "dynamic")
        self.assertTrue(report["scenario"]["dynamic"])
        self.assertAlmostEqual(report["needed"]["mean"], 9, delta=0.5)

    def test_what_is_learnt_is_reported_with_its_curve(self):
        plain = ["--train", "logistic", "--replicas", "4", "--steps", "100", "--target-loss", "0.6", "--policy", "cancel"]
        learnt = self.report(*plain, "--compute", "lognormal(1, 0.1) slow={1}*3", "--data", "own")["learning"]
        self.assertEqual(len(learnt["curve"]), 51)
        self.assertEqual(learnt["curve"][-1]["loss"], learnt["loss"])
        self.assertLess(learnt["seconds_to_target"], learnt["curve"][-1]["seconds"])
        self.assertIsNotNone(learnt["slow_loss"])
        self.assertIsNone(self.report(*plain, "--compute", "constant(1)")["learning"]["slow_loss"])
        self.assertIn("s to target", self.sim(*plain).stdout)

    def test_a_stall_has_a_code_and_a_reason(self):
        plain = ["--replicas", "100", "--aggregate", "96", "--policy", "cancel", "--dead", "5"]
        stalled = self.report(*plain, code=5)["stalled"]
        self.assertEqual([stalled[key] for key in ["step", "live", "needed", "tokens"]], [1, 95, 96, 0])
        self.assertIn("95 of 100 replicas are live", stalled["reason"])
        self.assertIn("stalled: step 1 cannot end", self.sim(*plain).stdout)

    def test_a_chief_that_ends_a_job_says_what_the_step_needed_and_what_was_there(self):
        stalled = self.report("--replicas", "3", "--dead", "3", code=5)["stalled"]
        self.assertEqual([stalled[key] for key in ["step", "live", "needed", "tokens"]], [1, 0, 3, 3])
        self.assertIn("0 of 3 replicas are live", stalled["reason"])

    def test_tensorflow_with_distinct_replicas_goes_on_as_long_as_enough_of_them_live(self):
        plain = ["--replicas", "16", "--aggregate", "14", "--distinct", "on", "--compute", "pareto(1, 1.2, 50)", "--steps", "300"]
        for dead in 0, 1, 2:
            report = self.report(*plain, "--dead", str(dead))
            self.assertIsNone(report["stalled"])
            self.assertEqual(report["accepted"], 300 * 14)
        stalled = self.report(*plain, "--dead", "3", code=5)["stalled"]
        self.assertEqual([stalled[key] for key in ["step", "live", "needed", "tokens"]], [1, 13, 14, 14])

    def test_rows_of_a_sweep_are_compared_in_pairs(self):
        report = self.report("--replicas", "20", "--compute", "exponential(1)", "--steps", "400", "--sweep", "aggregate=16:20")
        self.assertEqual([row["value"] for row in report["rows"]], ["16", "17", "18", "19", "20"])
        self.assertIsNone(report["rows"][0]["difference"])
        means = [row["step_time"]["mean"] for row in report["rows"]]
        self.assertEqual(means, sorted(means))
        for row, mean in zip(report["rows"][1:], means[1:]):
            difference = row["difference"]
            self.assertAlmostEqual(difference["mean"], mean - means[0], places=9)
            self.assertLess(difference["low"], difference["mean"])

    def test_the_table_goes_with_a_json_file(self):
        (self.folder / "scenario.toml").write_text('replicas = 6\npolicy = "cancel"\nsteps = 40\nsweep = "aggregate=4:6"\n')
        result = self.sim("--scenario", "scenario.toml", "--json", "report.json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("aggregate", result.stdout)
        rows = json.loads((self.folder / "report.json").read_text())["rows"]
        self.assertEqual([row["scenario"]["aggregate"] for row in rows], [4, 5, 6])
        for row in rows:
            self.assertEqual(row["stale"], 0)
            self.assertEqual(row["accepted"] + row["cancelled"], 6 * 40)

    def train(self, folder, *options):
        result = subprocess.run([TROUPE, "train", "--run-dir", folder, "--checkpoint-every", "0", "--evaluate-every", "0",
                                 "--batch", "8", *options], cwd=self.folder, text=True, capture_output=True, timeout=100)
        self.assertEqual(result.returncode, 0, result.stderr)

    def replay(self, folder, *options):
        result = self.sim("replay", folder, "--json", "-", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_a_run_in_virtual_time_is_replayed_exactly_and_repaired(self):
        self.train("run", "--world", "virtual", "--steps", "40", "--aggregate", "4", "--slow", "2=3", "--policy", "latest_token")
        report = self.replay("run", "--repair", "2")
        self.assertEqual(report["error"], {"mean_step": 0, "step_p50": 0, "step_p90": 0})
        self.assertAlmostEqual(report["recorded"]["mean"], 0.3)
        self.assertAlmostEqual(report["changed"]["mean"], 0.1)
        self.assertAlmostEqual(self.replay("run", "--aggregate", "3")["changed"]["mean"], 0.1)
        stalled = self.sim("replay", "run", "--replicas", "2", "--aggregate", "3")
        self.assertEqual(stalled.returncode, 2)

    def test_a_run_on_real_threads_is_replayed_step_by_step(self):
        # How well is printed, not asserted: a wall clock on a busy machine proves nothing.
        slow = [word for i, factor in enumerate([12, 10, 30, 11]) for word in ("--slow", f"{i}={factor}")]
        for policy in ["tensorflow", "latest_token", "cancel"]:
            self.train(policy, "--steps", "60", "--aggregate", "3", "--policy", policy, *slow)
            report = self.replay(policy)
            self.assertEqual(report["unchanged"]["steps"], 60)
            print(f"fidelity of a replayed run, {policy}: mean {report['error']['mean_step']:+.2%}, "
                  f"single steps {report['error']['step_p50']:.2%} in the median, {report['error']['step_p90']:.2%} at p90")

    def test_a_folder_that_is_no_run_cannot_be_replayed(self):
        result = self.sim("replay", "nowhere")
        self.assertEqual(result.returncode, 2)
        self.assertIn("troupe sim replay: not the folder of a run: ", result.stderr)

    def test_a_simulated_run_leaves_the_files_of_a_real_one(self):
        plain = ["--replicas", "4", "--aggregate", "3", "--policy", "cancel", "--steps", "30"]
        result = self.sim(*plain, "--ledger", "ledger.csv", "--steps-csv", "steps.csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len((self.folder / "steps.csv").read_text().splitlines()), 31)
        (self.folder / "config.toml").write_text('replicas = 4\naggregate = 3\npolicy = "cancel"\n')
        replayed = self.replay(".", "--aggregate", "4")
        self.assertEqual(replayed["error"]["mean_step"], 0)
        self.assertEqual(replayed["cut"]["cut"], 30)
        self.assertGreater(replayed["prediction"]["high"], replayed["prediction"]["mean"])
        self.assertEqual(self.sim(*plain, "--ledger", "/dev/null/l.csv").returncode, 2)

    def test_two_options_are_swept_as_a_grid(self):
        report = self.report("--replicas", "6", "--steps", "40", "--sweep", "policy=cancel,tensorflow", "--sweep", "aggregate=5,6")
        self.assertEqual(report["sweep"], ["policy", "aggregate"])
        self.assertEqual([row["value"] for row in report["rows"]],
                         [["cancel", "5"], ["cancel", "6"], ["tensorflow", "5"], ["tensorflow", "6"]])

    def test_a_trace_is_not_repeated_in_silence(self):
        rows = "".join(f"{i},{1 + i % 7 / 10},{1 + i % 5 / 10}\n" for i in range(40))
        (self.folder / "times.csv").write_text(",a,b\n" + rows)
        plain = ["--compute", "trace(times.csv)", "--replicas", "2", "--policy", "latest_token"]
        self.assertFalse(self.report(*plain, "--steps", "40")["trace"]["is_exceeded"])
        beyond = self.report(*plain, "--steps", "400")["trace"]
        self.assertEqual([beyond[key] for key in ["replicas", "draws", "block", "repeats"]], [2, 40, 7, 10])
        self.assertIn("times.csv: 40 times of 2 replicas; what goes beyond is blocks of 7",
                      self.sim(*plain, "--steps", "400").stdout)
        self.assertIn("intervals are those of", self.sim("advise", *plain, "--steps", "400").stdout)

    def test_a_trace_is_fitted_and_drawn(self):
        simulated = self.sim("--replicas", "3", "--aggregate", "3", "--compute", "lognormal(1, 0.1) slow={1}*2", "--steps", "200",
                             "--ledger", "ledger.csv")
        self.assertEqual(simulated.returncode, 0, simulated.stderr)
        lines = [line.split(",") for line in (self.folder / "ledger.csv").read_text().splitlines()[1:]]
        (self.folder / "times.csv").write_text("step,replica,seconds\n" + "".join(f"{l[0]},{l[1]},{l[6]}\n" for l in lines))
        report = self.sim("fit", "times.csv", "--json", "-", "--plots", "plots")
        self.assertEqual(report.returncode, 0, report.stderr)
        report = json.loads(report.stdout)
        self.assertTrue(report["expression"].startswith("lognormal("), report["expression"])
        self.assertEqual([one["replica"] for one in report["slow_replicas"]], [1])
        self.assertTrue((self.folder / "plots" / "fit.csv").exists())
        self.assertIn("replica 1: ", self.sim("fit", "times.csv").stdout)

    def test_a_trace_may_have_a_name_that_is_no_utf8(self):
        name = b"t\xff.csv"
        with open(os.path.join(os.fsencode(self.folder), name), "w") as file:
            file.write("1,2\n" * 40)
        for command in [[b"fit", name], [b"--steps", b"9", b"--replicas", b"2", b"--compute", b"trace(" + name + b")"],
                        [b"advise", b"--steps", b"9", b"--replicas", b"2", b"--compute", b"trace(" + name + b")"]]:
            result = subprocess.run([TROUPE, "sim", *command, "--json", "-"], cwd=self.folder, capture_output=True, timeout=100)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("t\ufffd.csv", json.dumps(json.loads(result.stdout), ensure_ascii=False))

    def test_refuses_a_fit_without_a_trace_and_names_what_is_wrong(self):
        (self.folder / "bad.csv").write_text("1,2\n3,x\n")
        for arguments, said in [([], "which trace?"), (["none.csv"], "none.csv"), (["bad.csv"], "bad.csv:2: "),
                                (["bad.csv", "--seed", "3"], "unknown option '--seed'")]:
            result = self.sim("fit", *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn("troupe sim fit: ", result.stderr)
            self.assertIn(said, result.stderr)

    def test_failures_cost_what_theory_says_and_backups_help_large_jobs(self):
        result = self.sim("goodput", "--json", "-", "--nodes", "100,10000", "--backups", "0,4", "--mtbf", "20000")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = json.loads(result.stdout)["rows"]
        self.assertEqual([(row["nodes"], row["backups"]) for row in rows], [(100, 0), (100, 4), (10000, 0), (10000, 4)])
        for row in rows:
            if row["backups"] == 0:
                self.assertAlmostEqual(row["useful"] / row["closed_form"], 1, delta=0.02)
        self.assertGreater(rows[3]["useful_of_all"], rows[2]["useful_of_all"])
        self.assertLess(rows[3]["stops"], 0.1 * rows[2]["stops"])

    def test_checkpoints_of_a_run_are_taken_from_its_folder(self):
        (self.folder / "config.toml").write_text("replicas = 2\naggregate = 2\ncheckpoint-every = 10\n")
        seconds, lines = 0, ["step,seconds,loss\n"]
        for step in range(1, 41):
            seconds += 2 + (5 if step % 10 == 1 and step > 1 else 0)
            lines.append(f"{step},{seconds},0.5\n")
        (self.folder / "metrics.csv").write_text("".join(lines))
        report = json.loads(self.sim("goodput", "--run", ".", "--json", "-").stdout)
        self.assertEqual(report["checkpoint_cost"], 5)
        self.assertEqual(report["rows"][0]["interval"], 20)
        (self.folder / "metrics.csv").write_text("".join(lines[:5]))
        self.assertIn("has no step behind a checkpoint", self.sim("goodput", "--run", ".").stderr)

    def test_advice_tells_of_failures_if_it_is_asked(self):
        plain = ["advise", "--replicas", "10", "--steps", "100", "--compute", "exponential(1)"]
        self.assertIn("failures   if a node fails every 500 h: a job with no backups stops",
                      self.sim(*plain, "--mtbf", "500").stdout)
        self.assertNotIn("failures", self.sim(*plain).stdout)
        self.assertEqual(self.sim("--mtbf", "500").returncode, 2)
        endless = self.sim(*plain, "--mtbf", "1e-9")
        self.assertEqual(endless.returncode, 2)
        self.assertIn("troupe sim advise: --mtbf: 10 nodes that fail every 1e-09 h", endless.stderr)

    def test_refuses_nonsense_about_failures(self):
        for options, said in [(["--mtbf", "0"], "--mtbf must be"), (["--nodes", "0"], "--nodes"), (["--nodes", "x"], "--nodes"),
                              (["--run", "nowhere"], "nowhere"), (["--checkpoint-every", "-1"], "--checkpoint-every must be"),
                              (["--nodes", "1000000", "--mtbf", "0.0001"], "no job comes to work there"),
                              (["--nodes", "1", "--backups", "100000", "--mtbf", "0.0001"], "--mtbf: 100001 nodes"), (["now"], "'now'")]:
            result = self.sim("goodput", *options)
            self.assertEqual(result.returncode, 2, options)
            self.assertTrue(result.stderr.startswith("troupe sim goodput: "), result.stderr)
            self.assertIn(said, result.stderr)

    def test_plots_come_with_their_numbers(self):
        result = self.sim("--replicas", "4", "--steps", "40", "--sweep", "aggregate=2:4", "--plots", "plots")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("not drawn: timeline: shows one run", result.stdout)
        for name in ["step-time", "arrivals", "backups", "convergence", "work"]:
            self.assertTrue((self.folder / "plots" / f"{name}.csv").exists(), name)

    def test_refuses_nonsense_before_it_simulates(self):
        for options in [["--replicas", "0"], ["--compute", "2 +"], ["--sweep", "aggregate=99:101"], ["--policy", "sps"]]:
            if options[0] == "--sweep":
                options += ["--policy", "cancel"]
            result = self.sim(*options)
            self.assertEqual(result.returncode, 2, options)
            self.assertTrue(result.stderr.startswith("troupe sim: "), result.stderr)
            self.assertEqual(result.stdout, "")

    def test_looks_for_a_place_for_results_before_it_simulates(self):
        years = ["--replicas", "1000", "--aggregate", "900", "--steps", "1000000"]
        (self.folder / "file").touch()
        for place, said in [
            (["--json", "no/such/folder/report.json"], "--json: cannot write no/such/folder/report.json: No such file"),
            (["--json", "."], "--json: . is a folder; name a file"),
            (["--plots", "file"], "--plots file: cannot be made: "),
        ]:
            for command in [[], ["advise"]]:
                result = self.sim(*command, *(years if not command else years[:2]), *place)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(said, result.stderr)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["file"])

    def test_output_that_cannot_be_written_is_an_error(self):
        for command in [["sim", "--help"], ["sim", "--steps", "5"], ["sim", "--steps", "5", "--json", "-"], ["cluster"]]:
            with open("/dev/full", "w") as full:
                result = subprocess.run([TROUPE, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=100)
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stderr, "troupe: cannot write to standard output: No space left on device\n")

    def test_a_limit_on_file_sizes_is_an_error(self):
        for command in [["--help"], ["sim", "--steps", "5"], ["train", "--dump-config"]]:
            with open(self.folder / "output", "w") as output:
                result = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", TROUPE, *command], cwd=self.folder,
                                        text=True, stdout=output, stderr=subprocess.PIPE, timeout=100)
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stderr, "troupe: cannot write to standard output: File too large\n")

    def test_a_disk_that_is_full_leaves_the_report_that_was_there(self):
        plain = ["--replicas", "4", "--aggregate", "4", "--steps", "50", "--json", "report.json"]
        self.assertEqual(self.sim(*plain).returncode, 0)
        before = (self.folder / "report.json").read_text()
        result = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", TROUPE, "sim", *plain],
                                cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("--json: cannot write report.json.new: File too large", result.stderr)
        self.assertEqual((self.folder / "report.json").read_text(), before)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["report.json"])

    def test_a_report_that_cannot_be_written_is_an_error(self):
        result = self.sim("--replicas", "2", "--steps", "5", "--json", "/dev/full")
        self.assertEqual(result.returncode, 1)
        self.assertIn("--json: cannot write /dev/full", result.stderr)


if __name__ == "__main__":
    unittest.main()
