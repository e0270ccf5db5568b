# SPDX-License-Identifier: Apache-2.0
# Goal: under every policy a job of several processes goes on without a worker that is killed, ends when a parameter
# server is, and goes on from what it has saved.
# Method: real processes on this machine.  Usage: policies_test.py PATH/TO/troupe
import signal
import unittest

from job_processes import FOR_EVER, SMALL, WATCHED, Job, addresses

POLICIES = {
    "tensorflow": ["--aggregate", "3"],
    "cancel": ["--aggregate", "3"],
    "k_async": ["--aggregate", "2"],
    "k_batch_async": ["--aggregate", "2"],
    "ssp": ["--slack", "2"],
}


class Policies(Job):
    def begin(self, policy, *options, **counts):
        job = self.start_all(addresses(**counts), *SMALL, "--policy", policy, *POLICIES[policy], *options, "--run-dir",
                             policy)
        return job

    def test_all_go_on_without_a_worker_and_end_without_a_ps(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                job = self.begin(policy, *FOR_EVER, *WATCHED, chief=1, ps=2, worker=3)
                job["chief:0"].says("^step ")
                job["worker:1"].send(signal.SIGKILL)
                job["chief:0"].says("lost replica 2: worker:1 .*; the job goes on with 3 of 4 replicas")
                job["chief:0"].makes_steps(10)
                job["ps:1"].send(signal.SIGKILL)
                for name in ("chief:0", "ps:0", "worker:0", "worker:2"):
                    job[name].ends(4, "ps:1 .*is gone")

    def test_all_go_on_from_what_they_have_saved(self):
        for policy in POLICIES:
            with self.subTest(policy=policy):
                job = self.begin(policy, *FOR_EVER, "--checkpoint-every", "1000000", ps=1, worker=2)
                job["worker:0"].says("^step ")
                job["worker:1"].send(signal.SIGTERM)
                for name, process in job.items():
                    process.ends(128 + signal.SIGTERM if name == "worker:1" else 0)
                step = int(self.trained(policy)[0].split("-")[1])
                more = self.start_all(addresses(ps=1, worker=2), *SMALL, "--policy", policy, *POLICIES[policy],
                                      "--resume", policy, "--steps", str(step + 20), "--run-dir", f"{policy}-more")
                for process in more.values():
                    process.ends(0)
                self.assertEqual(self.trained(f"{policy}-more")[0], f"checkpoint-{step + 20}")


if __name__ == "__main__":
    unittest.main()
