# SPDX-License-Identifier: Apache-2.0
# Jobs with processes on hosts of their own.  Where there can be none, tests of these are skipped, and say why.
import shutil
import subprocess
import unittest

from job_processes import PLAIN, TROUPE, Job, Process
from network_hosts import NetworkHosts, why_not

PORT = 2222
WHY_NOT = why_not() if shutil.which("tc") else "no iproute2"


@unittest.skipIf(WHY_NOT, f"no network namespaces: {WHY_NOT}")
class Hosts(Job):
    """One host for each of `TASKS`, and a switch between them."""

    TASKS = ()

    def setUp(self):
        super().setUp()
        self.hosts = NetworkHosts(len(self.TASKS))
        self.addCleanup(self.hosts.close)

    def cluster(self, port=PORT):
        """Where everybody is, as TF_CONFIG has it."""
        listed = {}
        for task in self.TASKS:
            listed.setdefault(task.split(":")[0], []).append(f"{self.address(task)}:{port}")
        return listed

    def number(self, task):
        return self.TASKS.index(task)

    def address(self, task):
        return self.hosts.ips[self.number(task)]

    def there(self, task):
        return self.hosts.there(self.number(task))

    def start_there(self, task, run, options, port=PORT):
        roles = ";".join(f"{role}={','.join(hosts)}" for role, hosts in self.cluster(port).items())
        command = [*self.there(task), TROUPE, "train", "--cluster", roles, "--task", task,
                   "--insecure-network", "--run-dir", run, *options]
        return Process(self, task, command, PLAIN)

    def begin(self, run, options, port=PORT):
        """The job, one process on each host; another one may be beside it, at other ports."""
        return {task: self.start_there(task, run, options, port) for task in self.TASKS}

    def cut(self, task):
        self.hosts.set_cable(self.number(task), "down")

    def restore(self, task):
        self.hosts.set_cable(self.number(task), "up")

    def part(self, one, other):
        """Cuts the link of two tasks; all others go on hearing of both."""
        self.change_routes("add", one, other)

    def bring_together(self, one, other):
        self.change_routes("del", one, other)

    def change_routes(self, how, one, other):
        for here, there in ((one, other), (other, one)):
            self.hosts.ip_there(self.number(here), "route", how, "blackhole", f"{self.address(there)}/32")

    def slow_down(self, task):
        """Lets through what a host says at 2 Mbit a second, until `speed_up`."""
        shaped = subprocess.run([*self.there(task), "tc", "qdisc", "replace", "dev", "card", "root", "tbf", "rate", "2mbit",
                                 "burst", "3kb", "latency", "2s"], capture_output=True)
        if shaped.returncode != 0:
            self.skipTest("this kernel shapes no traffic")

    def speed_up(self, task):
        subprocess.run([*self.there(task), "tc", "qdisc", "del", "dev", "card", "root"], capture_output=True)
