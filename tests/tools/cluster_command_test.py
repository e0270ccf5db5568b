# SPDX-License-Identifier: Apache-2.0
# Goal: `troupe cluster` reads the environment that launchers make, and ends with 2 if something is to be mended.
# Method: runs the command as launchers would.  Usage: cluster_command_test.py PATH/TO/troupe
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

from played_kubernetes import kubernetes

TROUPE = os.path.abspath(sys.argv.pop(1))
PREFIXES = ("OMPI_", "SLURM_", "MASTER_", "LOCAL_", "NCCL_", "TROUPE_", "TF_CONFIG", "RANK", "WORLD_SIZE", "GROUP_RANK")


class Cluster(unittest.TestCase):
    def cluster(self, *options, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
        return subprocess.run([TROUPE, "cluster", *options], env=environment | variables, text=True,
                              capture_output=True, timeout=60)

    def report(self, *options, code=0, **variables):
        result = self.cluster("--json", *options, **variables)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def test_a_process_that_was_told_nothing_is_alone(self):
        report = self.report()
        self.assertEqual(report["tasks"], [{"type": "chief", "index": 0, "address": ""}])
        self.assertEqual(report["own"], 0)
        self.assertIn("one process", self.cluster().stdout)

    def test_a_control_character_of_an_address_does_not_reach_the_terminal(self):
        result = self.cluster("--cluster", "worker=a\x1b[31mb:22,c:1")
        self.assertEqual(result.returncode, 2)
        self.assertIn("'a?[31mb:22' has a control character in its host", result.stdout)
        self.assertNotIn("\x1b", result.stdout)

    def attempts_of_a_pod(self, text, index, jobs="aaabb"):
        """What a pod of several jobs, one after the other, is told: how many attempts there were before, and the run
        folder."""
        script = textwrap.dedent(re.search(r"- \|\n([\s\S]*?)\n {10}volumeMounts", text)[1])
        with tempfile.TemporaryDirectory() as scratch:
            runs, troupe = pathlib.Path(scratch) / "runs", pathlib.Path(scratch) / "troupe"
            runs.mkdir()
            troupe.write_text('#!/bin/sh\nfor word; do :; done\necho "${TROUPE_RESTART_COUNT:-none} $word"\n')
            troupe.chmod(0o755)
            told = {"PATH": f"{scratch}:{os.environ['PATH']}", "JOB_COMPLETION_INDEX": index}
            script = script.replace("/runs/", f"{runs}/")
            said = [subprocess.run(["sh", "-c", script], env={**told, "JOB_UID": job}, capture_output=True, text=True,
                                   check=True).stdout for job in jobs]
            return [line.strip().replace(f"{runs}/", "/runs/") for line in said]

    def test_the_files_to_copy_describe_clusters_with_which_nothing_is_wrong(self):
        folder = pathlib.Path(__file__).resolve().parents[2] / "examples" / "cluster"
        file = self.report("--cluster-file", str(folder / "cluster.toml"), "--task", "worker:1")
        self.assertEqual(len(file["tasks"]), 4)
        text = (folder / "kubernetes.yaml").read_text()
        pods = self.report("--cluster", re.search('--cluster "([^"]+)"', text)[1], "--task", "worker:3")
        self.assertEqual(pods["tasks"][pods["own"]]["address"], "troupe-3.troupe:2222")
        self.assertEqual(f"completions: {len(pods['tasks'])}", re.search("completions: [0-9]+", text)[0])
        self.assertEqual(self.attempts_of_a_pod(text, "0"),
                         ["0 /runs/a/job", "1 /runs/a/job", "2 /runs/a/job", "0 /runs/b/job", "1 /runs/b/job"])
        self.assertEqual(self.attempts_of_a_pod(text, "1", "aa"), ["none /runs/a/job"] * 2)
        self.assertEqual(f"minAvailable: {len(pods['tasks'])}", re.search("minAvailable: [0-9]+", text)[0])
        timeout, grace = (int(re.search(rf"{name}[: ]+([0-9]+)", text)[1])
                           for name in ("--rejoin-timeout", "terminationGracePeriodSeconds"))
        self.assertGreaterEqual(grace, timeout + 30)
        script = folder / "slurm.sbatch"
        subprocess.run(["sh", "-n", script], check=True)
        text = script.read_text()
        roles = re.search('--cluster "([^"]+)"', text)[1]
        tasks, each = (re.search(rf"--{name}=([0-9]+)", text)[1] for name in ("ntasks", "ntasks-per-node"))
        nodes = self.report("--cluster", roles, SLURM_PROCID="7", SLURM_STEP_NUM_TASKS=tasks,
                            SLURM_STEP_NODELIST="node[0-3]", SLURM_STEP_TASKS_PER_NODE=f"{each}(x4)")
        self.assertEqual(nodes["tasks"][nodes["own"]], {"type": "worker", "index": 5, "address": "node3:8889"})

    def batch_on_slurm(self, code, **told):
        """What the script for Slurm has srun and scontrol do when its tasks end with a code, and its own code."""
        script = pathlib.Path(__file__).resolve().parents[2] / "examples" / "cluster" / "slurm.sbatch"
        with tempfile.TemporaryDirectory() as scratch:
            for name, answer in (("srun", code), ("scontrol", 0)):
                command = pathlib.Path(scratch) / name
                command.write_text(f'#!/bin/sh\necho "${{TROUPE_RESTART_COUNT:-none}} {name} $*"\nexit {answer}\n')
                command.chmod(0o755)
            told = {"PATH": f"{scratch}:{os.environ['PATH']}", "SLURM_JOB_ID": "7", "SLURM_CPUS_PER_TASK": "4", **told}
            result = subprocess.run(["sh", script], env=told, capture_output=True, text=True, timeout=60)
        self.assertEqual(result.stderr, "")
        return result.stdout.splitlines(), result.returncode

    def test_the_file_for_slurm_queues_a_job_again_whose_tasks_were_told_to_end(self):
        for code in (0, 4, 137):
            with self.subTest(code=code):
                said, answered = self.batch_on_slurm(code)
                self.assertEqual((len(said), answered), (1, code))
        said, answered = self.batch_on_slurm(143, SLURM_RESTART_COUNT="2")
        self.assertEqual((said[1:], answered), (["2 scontrol requeue 7"], 143))
        self.assertTrue(said[0].startswith("2 srun --kill-on-bad-exit=0 "))

    def test_the_file_for_slurm_gives_jobs_that_share_a_node_other_ports(self):
        ports = []
        for job in ("7", "8", "699", "4294901760"):
            said, _ = self.batch_on_slurm(0, SLURM_JOB_ID=job)
            ports.append(int(re.search("--port-base ([0-9]+)", said[0])[1]))
            self.assertIn(f"--run-dir runs/slurm-{job}", said[0])
        self.assertEqual(ports[:3], [20112, 20128, 31184])
        self.assertTrue(all(20000 <= port < 32768 for port in ports))

    def test_every_launcher_is_understood(self):
        launchers = {
            "TF_CONFIG": {"TF_CONFIG": json.dumps({"cluster": {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]},
                                                   "task": {"type": "worker", "index": 0}})},
            "torchrun": {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                         "MASTER_PORT": "29500"},
            "Slurm": {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NODELIST": "localhost",
                      "SLURM_STEP_TASKS_PER_NODE": "2"},
            "Open MPI": {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"},
        }
        for name, variables in launchers.items():
            with self.subTest(launcher=name):
                report = self.report(**variables)
                self.assertEqual(report["source"], name)
                self.assertEqual(report["own"], 1)
                self.assertEqual(len(report["tasks"]), 2)
                self.assertEqual(report["card"]["name"], "lo")

    def test_kubernetes_is_asked_for_pods(self):
        with kubernetes(chief={"job-0": "127.0.0.1"}, worker={"job-1": "127.0.0.2"}) as api:
            report = self.report("--kubernetes", "chief=app=chief;worker=app=worker", "--kubernetes-api", api,
                                 "--cluster", "chief=1;worker=1", HOSTNAME="job-1")
        self.assertEqual(report["source"], "Kubernetes")
        self.assertEqual(report["tasks"], [{"type": "chief", "index": 0, "address": "127.0.0.1:8470"},
                                           {"type": "worker", "index": 0, "address": "127.0.0.2:8470"}])
        self.assertEqual((report["own"], report["notes"]), (1, []))

    def test_the_report_and_the_server_choose_the_same_card(self):
        where = self.report("--cluster", "chief=localhost:1;worker=localhost:2", "--task", "chief",
                            NCCL_SOCKET_IFNAME="eth")
        self.assertEqual(where["card"], {"name": "lo", "address": "127.0.0.1"})
        nowhere = self.report("--cluster", "chief=192.0.2.2:1;worker=192.0.2.3:2", "--task", "chief",
                              NCCL_SOCKET_IFNAME="lo")
        self.assertIn("they will not reach this process there", nowhere["notes"][0])

    def test_problems_are_shown_with_exit_code_2(self):
        result = self.cluster("--cluster", "chief=a;workers=b:1", "--task", "worker:0")
        self.assertEqual(result.returncode, 2)
        self.assertIn("chief 0: 'a' has no port", result.stdout)
        self.assertIn('mended     --cluster "chief=a:2222;worker=b:1" --task worker:0', result.stdout)
        self.assertEqual(len(self.report(code=2, TF_CONFIG="nonsense")["problems"]), 1)
        wrong = self.cluster("--taks", "x")
        self.assertEqual((wrong.returncode, wrong.stdout), (2, ""))
        self.assertIn("the nearest known one is '--task'", wrong.stderr)

    def test_help_names_every_option(self):
        result = self.cluster("--help")
        self.assertEqual(result.returncode, 0)
        for name in ("cluster", "task", "cluster-file", "kubernetes", "kubernetes-api", "port-base", "interface", "json"):
            self.assertIn(f"--{name}", result.stdout)


if __name__ == "__main__":
    unittest.main()
