# SPDX-License-Identifier: Apache-2.0
# Goal: a run that is killed at any moment loses nothing but the steps since its last checkpoint, and ends bit for bit
# where one ends that was left alone.
# Method: kills runs at random moments until they are done, in the virtual world, and compares the last checkpoints.
# Usage: kill_test.py PATH/TO/troupe [KILLS [SEED]]
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from own_folder import TextTest, checkpoint

TROUPE = os.path.abspath(sys.argv[1])
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 6
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
OPTIONS = ["--text", "text", "--batch", "8", "--context", "4", "--embedding", "4", "--hidden", "16", "--world", "virtual"]
OPTIONS += ["--steps", "3000", "--checkpoint-every", "100", "--evaluate-every", "0", "--slow", "3=1.7"]


class Kill(TextTest):
    def start(self, *options):
        command = [TROUPE, "train", *options]
        return subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        _, complaints = process.communicate(timeout=100)
        self.assertEqual(process.returncode, 0, complaints)

    def steps_saved(self, run):
        names = (self.folder / run / "checkpoints").glob("checkpoint-*.safetensors")
        return sorted(int(name.stem.split("-")[1]) for name in names)

    def test_a_killed_run_ends_where_it_would_have_ended(self):
        began = time.monotonic()
        self.finish(self.start(*OPTIONS, "--run-dir", "whole"))
        whole_seconds = time.monotonic() - began
        draw = random.Random(SEED)
        run, options, kills, attempt = None, OPTIONS, 0, 0
        while True:
            attempt += 1
            last, run = run, f"run{attempt}"
            process = self.start(*options, "--run-dir", run)
            if kills < KILLS:
                time.sleep(draw.uniform(0, min(1, 3 / KILLS) * whole_seconds))
                process.send_signal(signal.SIGKILL)
            _, complaints = process.communicate(timeout=100)
            if process.returncode == 0 or 3000 in self.steps_saved(run):
                break
            self.assertEqual(process.returncode, -signal.SIGKILL, complaints)
            kills += 1
            saved = self.steps_saved(run)
            if not saved:  # killed before there was anything to go on with: the run before it still has all
                run = last
            elif last:
                self.assertGreaterEqual(saved[-1], self.steps_saved(last)[-1])
            options = OPTIONS if run is None else ["--resume", run]
        whole, whole_job = checkpoint(self.folder / "whole/checkpoints/checkpoint-3000.safetensors")
        killed, killed_job = checkpoint(self.folder / run / "checkpoints/checkpoint-3000.safetensors")
        self.assertEqual(killed, whole)
        self.assertEqual(killed_job, whole_job)
        print(f"{kills} kills, seed {SEED}: the same {len(whole)} tensors after {whole_job['step']} steps")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
