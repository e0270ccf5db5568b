# SPDX-License-Identifier: Apache-2.0
# Jobs whose processes stand on hosts of their own: network namespaces, with a switch between them.  Where there can be none,
# tests of these are skipped, and say why.
import os
import shutil
import subprocess
import unittest

from job_processes import PLAIN, TROUPE, Job, Process


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
class Hosts(Job):
    """One host for each of `TASKS`, and a switch between them."""

    TASKS = ()

    def setUp(self):
        super().setUp()
        self.hub = f"troupe-hub-{os.getpid()}"
        self.add_host(self.hub)
        self.ip("-n", self.hub, "link", "add", "switch", "type", "bridge")
        self.ip("-n", self.hub, "link", "set", "switch", "up")
        self.hosts = {}
        for number, task in enumerate(self.TASKS):
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

    def cluster(self):
        """Where everybody is, as TF_CONFIG has it."""
        listed = {}
        for task in self.TASKS:
            listed.setdefault(task.split(":")[0], []).append(f"{self.address(task)}:2222")
        return listed

    def address(self, task):
        return f"10.78.0.{self.TASKS.index(task) + 1}"

    def start_there(self, task, run, options):
        roles = ";".join(f"{role}={','.join(hosts)}" for role, hosts in self.cluster().items())
        command = ["ip", "netns", "exec", self.hosts[task][0], TROUPE, "train", "--cluster", roles, "--task", task,
                   "--insecure-network", "--run-dir", run, *options]
        return Process(self, task, command, PLAIN)

    def begin(self, run, options):
        """The job, one process on each host."""
        return {task: self.start_there(task, run, options) for task in self.TASKS}

    def cut(self, task):
        self.ip("-n", self.hub, "link", "set", self.hosts[task][1], "down")

    def restore(self, task):
        self.ip("-n", self.hub, "link", "set", self.hosts[task][1], "up")

    def part(self, one, other):
        """Cuts the link of two tasks; all others go on hearing of both."""
        self.change_routes("add", one, other)

    def bring_together(self, one, other):
        self.change_routes("del", one, other)

    def change_routes(self, how, one, other):
        for here, there in ((one, other), (other, one)):
            self.ip("netns", "exec", self.hosts[here][0], "ip", "route", how, "blackhole", f"{self.address(there)}/32")

    def slow_down(self, task):
        """Lets through what a host says at 2 Mbit a second, until `speed_up`."""
        shaped = subprocess.run(["ip", "netns", "exec", self.hosts[task][0], "tc", "qdisc", "replace", "dev", "card", "root",
                                 "tbf", "rate", "2mbit", "burst", "3kb", "latency", "2s"], capture_output=True)
        if shaped.returncode != 0:
            self.skipTest("this kernel shapes no traffic")

    def speed_up(self, task):
        namespaces("netns", "exec", self.hosts[task][0], "tc", "qdisc", "del", "dev", "card", "root")
