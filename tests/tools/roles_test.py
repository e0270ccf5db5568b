# SPDX-License-Identifier: Apache-2.0
# Goal: whatever happens to a worker, a parameter server or the chief of a job ends as docs/failures.md says: a late
# start, a request to stop, a slow link, a partition.
# Method: real processes, the last two on hosts that are network namespaces; skipped where there can be none.
# Usage: roles_test.py PATH/TO/troupe
import os
import shutil
import signal
import subprocess
import time
import unittest

from job_processes import A_BACKUP, ALL_FOUR, FOR_EVER, PLAIN, TROUPE, Job, Process, addresses

ROLES = ("worker:1", "ps:0", "chief:0")
TASKS = ("chief:0", "ps:0", "worker:0", "worker:1", "worker:2")


class OneMachine(Job):
    OPTIONS = ALL_FOUR + ["--steps", "100"]

    def test_whoever_starts_late_is_waited_for(self):
        alone = self.alone(*self.OPTIONS)
        for late in ROLES:
            with self.subTest(late=late):
                cluster = addresses(chief=1, ps=1, worker=3)
                run = ["--run-dir", late.replace(":", "-")]
                job = [self.start(cluster, task, *self.OPTIONS, *run) for task in TASKS if task != late]
                time.sleep(1)
                job.append(self.start(cluster, late, *self.OPTIONS, *run))
                for process in job:
                    process.ends(0)
                self.assertEqual(self.trained(run[1]), alone)

    def test_whoever_is_asked_to_stop_all_end_and_the_last_step_is_saved(self):
        for asked in ROLES:
            with self.subTest(asked=asked):
                run = ["--run-dir", asked.replace(":", "-")]
                job = self.start_all(addresses(chief=1, ps=1, worker=3), *ALL_FOUR, *FOR_EVER, *run)
                job["chief:0"].says("^step ")
                job[asked].send(signal.SIGTERM)
                for name, process in job.items():
                    process.ends(128 + signal.SIGTERM if name == asked else 0, "asked to stop after step")
                self.trained(run[1])


def namespaces(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True)


def why_not():
    """What keeps us from having hosts of our own; empty if nothing does."""
    if not shutil.which("ip") or not shutil.which("tc"):
        return "no iproute2"
    name = f"troupe-try-{os.getpid()}"
    needed = [("netns", "add", name), ("-n", name, "link", "add", "switch", "type", "bridge"),
              ("link", "add", "card", "netns", name, "type", "veth", "peer", "name", "port", "netns", name),
              ("netns", "exec", name, "true")]
    tried = (namespaces(*words) for words in needed)
    refused = next((done.stderr.strip() or "no reason" for done in tried if done.returncode != 0), "")
    namespaces("netns", "del", name)
    return refused


WHY_NOT = why_not()


@unittest.skipIf(WHY_NOT, f"no network namespaces: {WHY_NOT}")
class ManyHosts(Job):
    """One host for each task, and a switch between them."""

    def setUp(self):
        super().setUp()
        self.hub = f"troupe-hub-{os.getpid()}"
        self.add_host(self.hub)
        self.ip("-n", self.hub, "link", "add", "switch", "type", "bridge")
        self.ip("-n", self.hub, "link", "set", "switch", "up")
        self.hosts = {}
        for number, task in enumerate(TASKS):
            host, port = f"troupe-{os.getpid()}-{number}", f"port{number}"
            self.add_host(host)
            self.hosts[task] = (host, port)
            self.ip("link", "add", "card", "netns", host, "type", "veth", "peer", "name", port, "netns", self.hub)
            self.ip("-n", host, "addr", "add", f"10.78.0.{number + 1}/24", "dev", "card")
            for card in ("card", "lo"):
                self.ip("-n", host, "link", "set", card, "up")
            self.ip("-n", self.hub, "link", "set", port, "master", "switch", "up")

    def add_host(self, name):
        self.addCleanup(namespaces, "netns", "del", name)
        self.ip("netns", "add", name)

    def ip(self, *words):
        done = namespaces(*words)
        self.assertEqual(done.returncode, 0, f"ip {' '.join(words)}: {done.stderr}")

    def begin(self, run, options):
        """The job, one process on each host."""
        listed = {"chief": [], "ps": [], "worker": []}
        for number, task in enumerate(TASKS):
            listed[task.split(":")[0]].append(f"10.78.0.{number + 1}:2222")
        roles = ";".join(f"{role}={','.join(hosts)}" for role, hosts in listed.items())
        job = {}
        for task, (host, _) in self.hosts.items():
            command = ["ip", "netns", "exec", host, TROUPE, "train", "--cluster", roles, "--task", task,
                       "--insecure-network", "--run-dir", run, *options]
            job[task] = Process(self, task, command, PLAIN)
        return job

    def cut(self, task):
        self.ip("-n", self.hub, "link", "set", self.hosts[task][1], "down")

    def restore(self, task):
        self.ip("-n", self.hub, "link", "set", self.hosts[task][1], "up")

    def test_a_worker_that_is_cut_off_is_given_up_and_hears_of_it(self):
        job = self.begin("run", A_BACKUP + FOR_EVER)
        job["chief:0"].says("^step ")
        self.cut("worker:1")
        job["chief:0"].says("lost replica 2: worker:1.*; the job goes on with 3 of 4 replicas")
        job["worker:1"].ends(4, "is gone")
        job["chief:0"].send(signal.SIGINT)
        job["chief:0"].ends(128 + signal.SIGINT)
        for task in ("ps:0", "worker:0", "worker:2"):
            job[task].ends(0)

    def test_a_worker_that_is_back_soon_is_not_missed(self):
        alone = self.alone(*ALL_FOUR, "--steps", "1500")
        job = self.begin("run", ALL_FOUR + ["--steps", "1500"])
        job["chief:0"].says("^step ")
        self.cut("worker:1")
        time.sleep(0.3)  # what is sent meanwhile is sent again within a second
        self.restore("worker:1")
        for process in job.values():
            process.ends(0)
        self.assertEqual(self.trained(), alone)

    def all_end_without(self, lost):
        job = self.begin("run", ALL_FOUR + FOR_EVER)
        job["chief:0"].says("^step ")
        self.cut(lost)
        for task, process in job.items():
            process.ends(4, "is gone" if task == lost else f"{lost} .*is gone")

    def test_all_end_if_the_ps_is_cut_off(self):
        self.all_end_without("ps:0")

    def test_all_end_if_the_chief_is_cut_off(self):
        self.all_end_without("chief:0")

    def test_a_slow_link_slows_the_job_and_changes_nothing(self):
        options = ALL_FOUR + ["--steps", "15"]
        alone = self.alone(*options)
        for slow in ROLES:
            with self.subTest(slow=slow):
                host, _ = self.hosts[slow]
                shaped = subprocess.run(["ip", "netns", "exec", host, "tc", "qdisc", "replace", "dev", "card", "root",
                                         "tbf", "rate", "2mbit", "burst", "3kb", "latency", "2s"], capture_output=True)
                if shaped.returncode != 0:
                    self.skipTest("this kernel shapes no traffic")
                job = self.begin(slow.replace(":", "-"), options)
                for process in job.values():
                    process.ends(0)
                self.assertEqual(self.trained(slow.replace(":", "-")), alone)
                namespaces("netns", "exec", host, "tc", "qdisc", "del", "dev", "card", "root")


if __name__ == "__main__":
    unittest.main()
