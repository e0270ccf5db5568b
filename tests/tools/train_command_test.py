# SPDX-License-Identifier: Apache-2.0
# Goal: `troupe train` does what its users see: files, figures, refusals, signals, exit codes.
# Method: runs the command in empty folders, as a user would.  Usage: train_command_test.py PATH/TO/troupe
import csv
import fcntl
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import termios
import unittest

from own_folder import TEXT, TextTest

TROUPE = os.path.abspath(sys.argv.pop(1))
TINY_TRANSFORMER = ["--model", "transformer", "--text", "text", "--batch", "4", "--context", "8", "--layers", "2",
                    "--heads", "2", "--width", "8"]
SMALL = ["--text", "text", "--batch", "8", "--context", "4", "--embedding", "4", "--hidden", "16"]


class Train(TextTest):
    def train(self, *options, environment={}):
        return subprocess.run([TROUPE, "train", *options], cwd=self.folder, text=True, capture_output=True, timeout=100,
                              env={**os.environ, **environment})

    def trained(self, *options):
        result = self.train(*SMALL, "--run-dir", "run", *options)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def table(self, name, run="run"):
        with open(self.folder / run / name, newline="") as file:
            return list(csv.DictReader(file))

    def test_a_run_leaves_its_files_and_they_agree(self):
        result = self.trained("--steps", "30")
        steps = self.table("metrics.csv")
        self.assertEqual([int(line["step"]) for line in steps], list(range(1, 31)))
        ledger = self.table("ledger.csv")
        accepted = [line for line in ledger if line["verdict"] == "accepted"]
        self.assertEqual(len(accepted), sum(int(line["accepted"]) for line in steps))
        self.assertGreaterEqual(len(ledger), 3 * 30)
        replicas = self.table("replicas.csv")
        self.assertEqual(sum(int(line["accepted"]) for line in replicas), len(accepted))
        for word in ["bits per byte", "gzip", "xz", "accepted", "stale", "waiting"]:
            self.assertIn(word, result.stdout)

    def test_a_run_that_can_print_nothing_is_made_all_the_same(self):
        closed = subprocess.run(["sh", "-c", '"$@" >&- 2>&- <&-', "sh", TROUPE, "train", *SMALL, "--run-dir", "run",
                                 "--steps", "20"], cwd=self.folder, timeout=100)
        self.assertEqual(closed.returncode, 0)
        self.assertEqual(len(self.table("metrics.csv")), 20)

    def test_a_run_whose_output_fills_a_disk_is_made_all_the_same(self):
        for stream, code in (("stderr", 0), ("stdout", 1)):
            with open("/dev/full", "w") as full:
                streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: full}
                result = subprocess.run([TROUPE, "train", *SMALL, "--run-dir", stream, "--steps", "20"],
                                        cwd=self.folder, text=True, timeout=100, **streams)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(len(self.table("metrics.csv", stream)), 20)
        self.assertIn("cannot write to standard output: No space left on device\n", result.stderr)

    def limited(self, bytes_of_a_file, *options):
        """A run whose files may not grow beyond a limit."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_of_a_file, bytes_of_a_file))
        return subprocess.run([TROUPE, "train", *SMALL, "--run-dir", "run", *options], cwd=self.folder, text=True,
                              capture_output=True, timeout=100, preexec_fn=limit)

    @unittest.skipIf(os.geteuid(), "only root can be a user without processes")
    def test_a_limit_on_threads_is_named_before_anything_is_made(self):
        os.chmod(self.folder, 0o777)
        limit = lambda: resource.setrlimit(resource.RLIMIT_NPROC, (4, 4))
        try:
            result = subprocess.run([TROUPE, "train", *SMALL, "--run-dir", "run"], cwd=self.folder, text=True, user=63106,
                                    capture_output=True, timeout=100, preexec_fn=limit)
        except PermissionError:
            self.skipTest("the command lies where only root may look")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"only 2 of the \d+ threads that this process needs can be made: .*; raise ulimit -u, "
                                        "or the container's limit on processes\n")
        self.assertFalse((self.folder / "run").exists())

    def test_a_limit_on_file_sizes_is_a_full_disk(self):
        result = self.limited(4096, "--steps", "200", "--world", "virtual", "--checkpoint-every", "0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, "ledger.csv: File too large")
        self.assertIn("bits per byte", result.stdout)

    def test_a_disk_that_is_full_at_the_start_is_no_wrong_option(self):
        result = self.limited(0, "--steps", "20")
        self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
        self.assertIn("cannot write run/config.toml.new: File too large\n", result.stderr)
        self.assertFalse((self.folder / "run").exists())

    def test_each_step_is_evaluated_once(self):
        for strategy in ("parameter_server", "mirrored"):
            self.trained("--steps", "20", "--evaluate-every", "10", "--strategy", strategy, "--run-dir", strategy)
            steps = [int(line["step"]) for line in self.table("evaluations.csv", strategy)]
            self.assertEqual(steps[-1], 20)
            self.assertEqual(steps, sorted(set(steps)))

    def test_a_timeline_shows_the_whole_of_a_run_that_is_too_long_for_it(self):
        self.trained("--steps", "400", "--evaluate-every", "0", "--timeline-bytes", "200000")
        path = self.folder / "run/timeline.json"
        self.assertLessEqual(path.stat().st_size, 200000)
        events = json.loads(path.read_text())["traceEvents"]
        steps = [event["args"]["step"] for event in events if event["name"] == "step"]
        apart = steps[1] - steps[0]
        self.assertEqual(steps, list(range(apart, 401, apart)))
        self.assertGreater(len(steps), 10)

    def test_more_gradients_than_replicas_are_told_of(self):
        result = self.trained("--steps", "2", "--replicas", "4", "--aggregate", "9")
        self.assertIn("more gradients than replicas: an update takes several of a replica, 2.2 on average\n", result.stderr)
        self.assertNotIn("more gradients", self.trained("--steps", "2", "--run-dir", "usual").stderr)

    def test_a_run_goes_on_in_a_folder_of_its_own_and_counts_on(self):
        self.trained("--steps", "20", "--checkpoint-every", "10")
        result = self.train("--resume", "run", "--steps", "30", "--run-dir", "more")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("resume    run from step 20", result.stderr)
        self.assertEqual([int(line["step"]) for line in self.table("metrics.csv", "more")], list(range(21, 31)))
        names = sorted(path.name for path in (self.folder / "more/checkpoints").iterdir())
        self.assertEqual(names, ["checkpoint-20.safetensors", "checkpoint-30.safetensors"])

    def refused(self, line, *options, environment={}):
        """What is wrong with the command is said in one line, and nothing is written."""
        before = sorted(self.folder.rglob("*"))
        result = self.train(*SMALL, *options, environment=environment)
        self.assertEqual((result.returncode, result.stderr.count("\n")), (2, 1), result.stderr)
        self.assertIn(line, result.stderr)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_variables_that_are_held_twice_need_two_holders(self):
        self.refused("--replicate-owners 2 takes 2 parameter servers or more, but this process is alone", "--run-dir",
                     "run", "--replicate-owners", "2")
        cluster = {"ps": ["127.0.0.1:29999"], "worker": ["127.0.0.1:29998", "127.0.0.1:29997"]}
        config = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
        self.refused("--replicate-owners 2 takes 2 parameter servers or more, but TF_CONFIG names 1", "--run-dir", "run",
                     "--replicate-owners", "2", environment={"TF_CONFIG": config})

    def test_a_count_of_restarts_that_is_none_is_refused(self):
        for count in ("abc", "-1", "", "1 ", "1000001"):
            with self.subTest(count=count):
                self.refused(f"TROUPE_RESTART_COUNT is '{count}'", environment={"TROUPE_RESTART_COUNT": count})

    def test_a_restart_of_torchrun_goes_on_where_the_attempt_before_has_ended(self):
        def counted(count, restarts="3"):
            return {"TORCHELASTIC_RESTART_COUNT": count, "TORCHELASTIC_MAX_RESTARTS": restarts}

        self.refused("TORCHELASTIC_RESTART_COUNT is 'x'", "--run-dir", "run", environment=counted("x"))
        options = [*SMALL, "--checkpoint-every", "10", "--run-dir", "run", "--steps"]
        for steps, count in (("20", "0"), ("30", "1")):
            result = self.train(*options, steps, environment=counted(count))
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("resume    run from step 20", result.stderr)
        self.assertTrue((self.folder / "run-2").exists())
        before = {**counted("0"), "TROUPE_RESTART_COUNT": "2"}
        self.assertIn("resume    run-2 from step 30", self.train(*options, "40", environment=before).stderr)

    def test_an_attempt_that_was_lost_after_its_last_step_comes_to_its_end_in_the_next(self):
        options = [*SMALL, "--steps", "20", "--run-dir", "run", "--checkpoint-every"]
        for every, count, line in (("10", "0", "files     run\n"), ("20", "1", "resume    run from step 10"),
                                   ("20", "2", "resume    run-2 from step 10")):
            result = self.train(*options, every, environment={"TROUPE_RESTART_COUNT": count})
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(line, result.stderr)
        self.assertEqual([int(line["step"]) for line in self.table("metrics.csv", "run-3")], list(range(11, 21)))

    def test_an_attempt_whose_checkpoints_are_damaged_or_unreadable_is_not_begun_anew(self):
        options = [*SMALL, "--steps", "30", "--run-dir", "run"]
        self.trained("--steps", "20")
        checkpoints = self.folder / "run/checkpoints"
        newest = checkpoints / "checkpoint-20.safetensors"
        again = {"TROUPE_RESTART_COUNT": "1"}

        def refused(code, line):
            result = self.train(*options, environment=again)
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn(line, result.stderr)
            self.assertFalse((self.folder / "run-2").exists())

        newest.rename(self.folder / "kept")
        newest.symlink_to(newest.name)
        refused(1, "cannot read run/checkpoints/checkpoint-20.safetensors: Too many levels of symbolic links")
        newest.unlink()
        newest.mkdir()
        refused(2, "run/checkpoints/checkpoint-20.safetensors is a folder")
        newest.rmdir()
        newest.write_bytes((self.folder / "kept").read_bytes()[:-1])
        refused(6, "run: its checkpoints are damaged")
        newest.unlink()
        result = self.train(*options, environment=again)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_torchrun_without_restarts_counts_no_attempts(self):
        (self.folder / "run-2").mkdir()
        (self.folder / "run-2/config.toml").write_text("")
        counted = {"TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "0"}
        result = self.train(*SMALL, "--steps", "3", "--run-dir", "run", environment=counted)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_folder_in_the_way_of_a_later_attempt_is_noticed_by_the_first(self):
        (self.folder / "runs/job-3").mkdir(parents=True)
        (self.folder / "runs/job-3/config.toml").write_text("")
        for name in ("job-2", "job-three", "job-1", "job-20261120", "other-2"):
            (self.folder / "runs" / name).mkdir()
            if name != "job-2":  # that one is empty
                (self.folder / "runs" / name / "config.toml").write_text("")
        first = {"TROUPE_RESTART_COUNT": "0"}
        self.refused("--run-dir: runs/job-3 is where attempt 3 of this job would go on, but it is taken", "--run-dir",
                     "runs/job", environment=first)
        for options, environment in ((["--run-dir", "runs/another"], first), (["--run-dir", "runs/job"], {})):
            result = self.train(*SMALL, "--steps", "3", *options, environment=environment)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_nothing_to_go_on_with_is_said_in_one_line_and_no_folder_made(self):
        def refused(line, *options, code=6):
            result = self.train(*options, "--run-dir", "more")
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(line, result.stderr)
            self.assertFalse((self.folder / "more").exists())

        self.trained("--steps", "20", "--checkpoint-every", "10")
        refused("that run has made all its 20 steps", "--resume", "run", code=2)
        (self.folder / "other").write_text(TEXT + "!")
        refused("hidden 16, not a perceptron, context 4, embedding 4, hidden 17; leave", "--resume", "run", "--steps", "30", "--hidden", "17")
        refused("its checkpoints are of seed 1, not 2", "--resume", "run", "--steps", "30", "--seed", "2")
        refused("made with the optimizer adam", "--resume", "run", "--steps", "30", "--optimizer", "sgd")
        refused("that run trained on another text than other", "--resume", "run", "--steps", "30", "--text", "other")
        refused(f"that run trains on {len(TEXT) - len(TEXT) // 10} bytes of the text, not on {len(TEXT) - len(TEXT) // 2} bytes; "
                "leave --held-out as it was", "--resume", "run", "--steps", "30", "--held-out", "0.5")
        (self.folder / "text").rename(self.folder / "moved")
        refused("run/config.toml:", "--resume", "run", "--steps", "30", code=2)
        (self.folder / "moved").rename(self.folder / "text")
        for path in (self.folder / "run/checkpoints").iterdir():
            path.write_bytes(path.read_bytes()[:-1])
        result = self.train("--resume", "run", "--steps", "30", "--run-dir", "more")
        self.assertEqual(result.returncode, 6)
        self.assertIn("--resume run: no checkpoint in run/checkpoints is whole", result.stderr)
        self.assertEqual(self.train("--resume", "nowhere").returncode, 2)

    def test_a_transformer_trains_under_every_strategy_and_goes_on(self):
        for strategy in ("parameter_server", "mirrored", "multi_worker_mirrored"):
            result = self.train(*TINY_TRANSFORMER, "--steps", "20", "--strategy", strategy, "--run-dir", strategy)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("model     transformer, context 8, layers 2, heads 2, width 8: 3872 parameters", result.stderr)
            self.assertIn("bits per byte", result.stdout)
        more = self.train("--resume", "mirrored", "--steps", "40", "--run-dir", "more")
        self.assertEqual(more.returncode, 0, more.stderr)
        self.assertEqual(int(self.table("metrics.csv", "more")[-1]["step"]), 40)
        for options, other in ((["--heads", "4"], "a transformer, context 8, layers 2, heads 4, width 8"),
                               (["--model", "perceptron"], "a perceptron, context 8, embedding 32, hidden 512")):
            refused = self.train("--resume", "mirrored", "--steps", "40", *options, "--run-dir", "other")
            self.assertEqual(refused.returncode, 6, refused.stderr)
            self.assertEqual(refused.stderr, "troupe train: --resume mirrored: that run trains a transformer, context 8, layers 2, "
                             f"heads 2, width 8, not {other}; leave the model's options as they were; if you gave none, "
                             "the config.toml of that run is damaged\n")

    def test_an_interrupted_transformer_ends_as_one_that_was_not_though_it_recomputes(self):
        alike = ["--world", "virtual", "--strategy", "mirrored", "--learning-rate-decay", "none"]
        for steps, folder in (("20", "half"), ("40", "whole")):
            self.assertEqual(self.train(*TINY_TRANSFORMER, *alike, "--steps", steps, "--run-dir", folder).returncode, 0)
        self.assertEqual(self.train("--resume", "half", "--steps", "40", "--recompute", "on", "--run-dir", "rest").returncode, 0)
        last = [self.table("metrics.csv", run)[-1]["loss"] for run in ("whole", "rest")]
        self.assertEqual(last[0], last[1])

    def test_a_run_in_less_precision_says_so_keeps_it_and_has_the_same_bits_in_both_worlds(self):
        def losses(run):
            return [line["loss"] for line in self.table("metrics.csv", run)]

        alike = ["--steps", "20", "--aggregate", "4", "--policy", "latest_token"]
        self.assertNotIn("precision", self.trained(*alike, "--run-dir", "full").stderr)
        for precision in ("tf32", "bf16", "f16"):
            result = self.trained(*alike, "--precision", precision, "--run-dir", precision)
            self.assertIn(f"\nprecision {precision}: operands of matrix products are rounded to it, ", result.stderr)
            self.assertIn(f'\nprecision = "{precision}" ', (self.folder / precision / "config.toml").read_text())
            self.trained(*alike, "--precision", precision, "--world", "virtual", "--run-dir", "virtual-" + precision)
            self.assertEqual(losses(precision), losses("virtual-" + precision))
            self.assertNotEqual(losses(precision), losses("full"))
            for rounded, exact in zip(losses(precision), losses("full")):
                self.assertLess(abs(float(rounded) - float(exact)), 0.05)
        more = self.train("--resume", "bf16", "--steps", "30", "--run-dir", "more")
        self.assertIn("\nprecision bf16: ", more.stderr)

    def test_a_transformer_learns_in_f16_under_the_other_strategy_and_goes_on_as_if_it_had_not_ended(self):
        alike = ["--world", "virtual", "--strategy", "mirrored", "--learning-rate-decay", "none", "--precision", "f16"]
        for steps, folder in (("20", "half"), ("40", "whole")):
            self.assertEqual(self.train(*TINY_TRANSFORMER, *alike, "--steps", steps, "--run-dir", folder).returncode, 0)
        self.assertEqual(self.train("--resume", "half", "--steps", "40", "--run-dir", "rest").returncode, 0)
        last = [self.table("metrics.csv", run)[-1]["loss"] for run in ("whole", "rest")]
        self.assertEqual(last[0], last[1])

    def test_a_clip_by_the_norm_of_all_variables_slows_a_run_down_under_every_strategy_and_is_kept(self):
        def losses(run):
            return [line["loss"] for line in self.table("metrics.csv", run)]

        for strategy in ("parameter_server", "mirrored", "multi_worker_mirrored"):
            alike = ["--world", "virtual", "--steps", "20", "--optimizer", "sgd", "--strategy", strategy]
            self.trained(*alike, "--run-dir", "free-" + strategy)
            self.trained(*alike, "--clip-global-norm", "1e6", "--run-dir", "long-" + strategy)
            self.trained(*alike, "--clip-global-norm", "0.01", "--run-dir", "clipped-" + strategy)
            free, long, clipped = (losses(run + strategy) for run in ("free-", "long-", "clipped-"))
            self.assertEqual(free, long)
            self.assertGreater(float(clipped[-1]), float(free[-1]))
        self.assertEqual(losses("clipped-mirrored"), losses("clipped-multi_worker_mirrored"))
        self.assertIn("\nclip-global-norm = 0.01 ", (self.folder / "clipped-mirrored" / "config.toml").read_text())
        refused = self.train(*SMALL, "--clip-global-norm", "-1")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("troupe train: --clip-global-norm ", refused.stderr)

    def test_a_precision_that_there_is_not_is_refused_by_name(self):
        refused = self.train(*SMALL, "--precision", "fp8")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("troupe train: --precision must be one of full, tf32, bf16, f16, not 'fp8'", refused.stderr)

    def test_a_model_writes_text(self):
        def sample(run, *options):
            return subprocess.run([TROUPE, "sample", run, *options], cwd=self.folder, capture_output=True, timeout=100)

        self.trained("--steps", "600", "--embedding-dropout", "0", "--hidden-dropout", "0")
        self.train(*TINY_TRANSFORMER, "--steps", "5", "--run-dir", "transformer")
        for run in ("run", "transformer"):
            texts = [sample(run, "--bytes", "50", "--seed", seed, "--prompt", "the ").stdout for seed in ("1", "1", "2")]
            self.assertEqual([len(text) for text in texts], [55] * 3)  # with the prompt, and the end of the line
            self.assertEqual(texts[0], texts[1])
            self.assertNotEqual(texts[0], texts[2])
            self.assertTrue(texts[0].startswith(b"the "))
        self.assertEqual(sample("run", "--prompt", "").stdout, sample("run").stdout)  # each begins from nothing
        likeliest = sample("run", "--bytes", "20", "--temperature", "0", "--prompt", "the quick").stdout.decode()
        self.assertIn(likeliest.strip(), TEXT)
        for folder, run, old, new in (("empty", "run", "", ""), ("unreadable", "run", "", ""),
                                      ("edited", "transformer", "heads = 2", "heads = 3")):
            (self.folder / folder).mkdir()
            config = (self.folder / run / "config.toml").read_text()
            self.assertIn(old, config)
            (self.folder / folder / "config.toml").write_text(config.replace(old, new))
        (self.folder / "unreadable/checkpoints").symlink_to("checkpoints")
        self.train(*TINY_TRANSFORMER, "--steps", "20", "--run-dir", "diverged", "--optimizer", "sgd",
                   "--learning-rate", "1e6")
        for code, line, options in (
            (2, "no run is named: give its folder, as in troupe sample runs/2026-11-21-020641", ["--bytes", "1"]),
            (2, "RUN: ", ["nowhere"]), (6, "empty: no checkpoints are there", ["empty"]),
            (1, "unreadable: cannot look at unreadable/checkpoints: Too many levels", ["unreadable"]),
            (2, "edited/config.toml: language model: a width of 8 cannot be shared evenly by 3 heads", ["edited"]),
            (6, "its training has diverged", ["diverged"]),
            (2, "--temperature must be a number from 0 to 100, not '-1'", ["run", "--temperature", "-1"])):
            refused = subprocess.run([TROUPE, "sample", *options], cwd=self.folder, text=True, capture_output=True)
            self.assertEqual(refused.returncode, code, refused.stderr)
            self.assertEqual(refused.stderr.count("\n"), 1, refused.stderr)
            self.assertIn(line, refused.stderr)

    def test_the_curves_are_whole_frames_for_every_step_and_evaluation(self):
        self.trained("--steps", "10", "--evaluate-every", "5")
        (path,) = (self.folder / "run").glob("events.out.tfevents.*")
        content, records = path.read_bytes(), []
        while content:
            (length,) = struct.unpack_from("<Q", content)
            records.append(content[12 : 12 + length])
            content = content[16 + length :]
        self.assertIn(b"brain.Event:2", records[0])
        self.assertEqual(sum(b"speed/step_seconds" in record for record in records), 10)
        self.assertEqual(sum(b"learning_rate" in record for record in records), 10)
        self.assertEqual(sum(b"evaluation/bits_per_byte" in record for record in records), 2)

    def test_the_timeline_is_json_with_a_track_per_actor_and_arrows_that_end(self):
        self.trained("--steps", "10")
        events = json.loads((self.folder / "run" / "timeline.json").read_text())["traceEvents"]
        tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertLessEqual({"chief", "replica 0", "replica 3", "owner embedding"}, tracks)
        starts = {event["id"] for event in events if event["ph"] == "s"}
        ends = {event["id"] for event in events if event["ph"] == "f"}
        self.assertEqual(starts, ends)
        self.assertTrue(starts)

    def test_the_virtual_world_gives_the_same_run_for_the_same_seed(self):
        for run in ["one", "two"]:
            options = ["--world", "virtual", "--seed", "5", "--steps", "12", "--slow", "2=3"]
            result = self.train(*SMALL, *options, "--run-dir", run)
            self.assertEqual(result.returncode, 0, result.stderr)
        for name in ["metrics.csv", "evaluations.csv", "ledger.csv", "replicas.csv", "timeline.json"]:
            one = (self.folder / "one" / name).read_bytes()
            self.assertEqual(one, (self.folder / "two" / name).read_bytes(), name)

    def test_a_device_that_is_not_there_is_refused_before_anything_is_written(self):
        result = self.train(*SMALL, "--steps", "3", "--device", "gpu:99", "--run-dir", "run")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertIn("--device gpu:99: ", result.stderr)
        self.assertRegex(result.stderr, "no GPU support|no GPU here|there is no gpu:99 here|driver")
        self.assertFalse((self.folder / "run").exists())

    def test_a_straggler_is_dropped_and_the_others_go_on(self):
        self.trained("--world", "virtual", "--policy", "latest_token", "--slow", "3=4", "--steps", "20")
        by_replica = {line["replica"]: line for line in self.table("replicas.csv")}
        self.assertEqual(by_replica["3"]["accepted"], "0")
        self.assertGreater(int(by_replica["3"]["stale"]), 0)
        self.assertEqual(by_replica["0"]["accepted"], "20")

    def test_a_replica_that_gives_nothing_is_in_every_table(self):
        result = self.trained("--world", "virtual", "--policy", "latest_token", "--slow", "3=100000", "--steps", "50")
        self.assertRegex(result.stdout, r"(?m)^3 +0 +0 +0 ")
        self.assertEqual({value for name, value in self.table("replicas.csv")[3].items() if name != "replica"}, {"0"})
        self.assertIn('"words":"has given no gradient"', (self.folder / "run" / "report.html").read_text())

    def test_under_cancel_a_straggler_is_told_to_stop(self):
        self.trained("--world", "virtual", "--policy", "cancel", "--slow", "3=4", "--steps", "20")
        by_replica = {line["replica"]: line for line in self.table("replicas.csv")}
        self.assertEqual(by_replica["3"]["cancelled"], "20")

    def test_fewer_replicas_than_gradients_train_with_spare_tokens(self):
        self.trained("--world", "virtual", "--replicas", "2", "--aggregate", "3", "--steps", "10")
        for line in self.table("metrics.csv"):
            self.assertGreaterEqual(int(line["accepted"]), 3)

    def test_the_dumped_config_reads_back(self):
        dumped = self.train("--steps", "7", "--policy", "cancel", "--slow", "1=2.5", "--dump-config")
        self.assertEqual(dumped.returncode, 0)
        (self.folder / "job.toml").write_text(dumped.stdout)
        again = self.train("--config", "job.toml", "--dump-config")
        settings = [line.split("#")[0].strip() for line in again.stdout.splitlines()]
        self.assertEqual([line.split("#")[0].strip() for line in dumped.stdout.splitlines()], settings)
        self.assertIn('policy = "cancel"', settings)

    def test_a_signal_ends_the_run_with_its_summary(self):
        command = [TROUPE, "train", *SMALL, "--steps", "100000000", "--run-dir", "run"]
        process = subprocess.Popen(command, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if line.startswith("step"):
                break
        process.send_signal(signal.SIGTERM)
        output, complaints = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn("asked to stop after step", complaints)
        self.assertIn("bits per byte", output)
        self.assertIn("\nno plots: the run was asked to stop; to draw them type\n  cd run && gnuplot loss.gp steps.gp\n", output)
        self.assertFalse((self.folder / "run" / "loss.svg").exists())
        json.loads((self.folder / "run" / "timeline.json").read_text())

    def test_a_run_whose_reader_has_gone_ends_as_any(self):
        command = [TROUPE, "train", *SMALL, "--steps", "100000000", "--run-dir", "run"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.kill)
        for line in process.stdout:
            if line.startswith(b"step"):
                break
        process.stdout.close()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(60), 128 + signal.SIGINT)
        self.assertTrue((self.folder / "run" / "report.html").exists())
        self.assertTrue(list((self.folder / "run" / "checkpoints").glob("checkpoint-*")))

    def test_a_run_whose_terminal_is_closed_saves_its_step(self):
        screen, terminal = os.openpty()

        def own_terminal():
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        command = [TROUPE, "train", *SMALL, "--steps", "100000000", "--run-dir", "run"]
        process = subprocess.Popen(command, cwd=self.folder, stdin=terminal, stdout=terminal, stderr=terminal,
                                   preexec_fn=own_terminal)
        self.addCleanup(process.kill)
        os.close(terminal)
        said = b""
        while b"step " not in said:
            said += os.read(screen, 4096)
        os.close(screen)
        self.assertEqual(process.wait(60), 128 + signal.SIGHUP)
        self.assertTrue((self.folder / "run" / "report.html").exists())
        self.assertTrue(list((self.folder / "run" / "checkpoints").glob("checkpoint-*")))

    def test_a_limit_on_open_files_is_named_with_its_mend(self):
        for files, said in (4, "cannot watch signals"), (5, "cannot create run-5/metrics.csv"):
            result = subprocess.run(["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", TROUPE, "train", *SMALL, "--run-dir",
                                     f"run-{files}"], cwd=self.folder, text=True, capture_output=True, timeout=100)
            self.assertEqual(result.returncode, 1, result.stderr)
            self.assertIn(f"troupe train: {said}: Too many open files; ulimit -n sets the limit\n", result.stderr)

    def test_the_summary_and_the_report_are_there_before_plots_are_drawn(self):
        gnuplot = self.folder / "gnuplot"
        gnuplot.write_text("#!/bin/sh\nwhile [ ! -e ../enough ]; do sleep 0.02; done; exit 7\n")
        gnuplot.chmod(0o755)
        process = subprocess.Popen([TROUPE, "train", *SMALL, "--steps", "20", "--run-dir", "run"], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   env={**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"})
        self.addCleanup(process.kill)
        said = "".join(iter(process.stdout.readline, "report: run/report.html\n"))
        self.assertIn("bits per byte", said)
        self.assertTrue((self.folder / "run" / "report.html").exists())
        (self.folder / "enough").touch()
        self.assertRegex(process.communicate(timeout=60)[0], "^no plots: gnuplot failed with 7; to draw them type\n")
        self.assertEqual(process.returncode, 0)

    def test_a_replica_that_takes_too_long_is_named(self):
        result = self.train(*SMALL, "--policy", "latest_token", "--aggregate", "4", "--slow", "2=1000", "--world",
                            "virtual", "--deadline", "50", "--steps", "5", "--run-dir", "run")
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertIn("still missing: replica 2", result.stderr)

    def test_a_job_that_cannot_run_is_refused_in_one_line_before_anything_is_written(self):
        (self.folder / "empty").write_text("")
        (self.folder / "used").mkdir()
        (self.folder / "used" / "file").write_text("")
        refused = [
            (["--text", "nowhere"], "nowhere"),
            (["--text", "empty"], "empty"),
            (["--text", "."], "folder"),
            (["--replicas", "0"], "--replicas"),
            (["--batch", "-1"], "--batch"),
            (["--steps", "many"], "--steps"),
            (["--aggregate", "5", "--policy", "cancel"], "--aggregate"),
            (["--aggregate", "5", "--initial-tokens", "0"], "--initial-tokens"),
            (["--slow", "7=2"], "--slow"),
            (["--epochs", "1", "--warm-up", "100000"], "--warm-up 100000 leaves no step for training: there are "),
            (["--learning-rate", "nan"], "--learning-rate"),
            (["--run-dir", "used"], "--run-dir"),
            (["--run-dir", "/dev/null/x"], "--run-dir"),
            (["--config", "nowhere.toml"], "nowhere.toml"),
            (["--optimiser", "adam"], "--optimizer"),
        ]
        before = sorted(os.listdir(self.folder))
        for options, culprit in refused:
            with self.subTest(options=options):
                result = self.train(*SMALL, *options)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
                self.assertIn(culprit, result.stderr)
                self.assertEqual(result.stdout, "")
                self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_help_lists_commands_options_and_exit_codes(self):
        for arguments in [["--help"], ["-h"], []]:
            shown = subprocess.run([TROUPE, *arguments], text=True, capture_output=True)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            for part in ["\n  train      train a model", "\n\nOptions:\n  --help     this text", "\n\nExit codes:\n"]:
                self.assertIn(part, shown.stdout)
            self.assertLessEqual(max(map(len, shown.stdout.splitlines())), 80)
        self.assertIn("--policy", self.train("--help").stdout)

    def test_an_unknown_command_is_answered_by_the_nearest_one(self):
        refused = subprocess.run([TROUPE, "trian"], text=True, capture_output=True)
        self.assertEqual((refused.returncode, refused.stdout, refused.stderr),
                         (2, "", "troupe: unknown command 'trian'; the nearest known one is 'train' "
                                 "(troupe --help lists all)\n"))


if __name__ == "__main__":
    unittest.main()
