# SPDX-License-Identifier: Apache-2.0
"""Hosts of their own on one machine: network namespaces, with a switch between them.  Needs root and iproute2.

network_hosts.py NAME ADDRESS COMMAND...   runs a command on one of the hosts NAME, as `ssh ADDRESS COMMAND...` would
"""
import ctypes
import os
import shutil
import subprocess
import sys

CLONE_NEWNET = 0x40000000  # <sched.h>


def ip(*words):
    """Its error, empty if there is none."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"ip {' '.join(words)}: {done.stderr.strip() or 'no reason'}"


class NetworkHosts:
    """Hosts 0 to count - 1, where `card` has an address; OSError says why there can be none."""

    def __init__(self, count):
        self.name = f"troupe-{os.getpid()}"
        self.hub = f"{self.name}-hub"
        self.hosts = [f"{self.name}-{number}" for number in range(count)]
        self.ips = [f"10.78.0.{number + 1}" for number in range(count)]
        try:
            self._build()
        except OSError:
            self.close()
            raise

    def _build(self):
        if not shutil.which("ip"):
            raise OSError("no iproute2")
        for host in (self.hub, *self.hosts):
            self.ip("netns", "add", host)
        self.ip("-n", self.hub, "link", "add", "switch", "type", "bridge")
        self.ip("-n", self.hub, "link", "set", "switch", "up")
        for number, host in enumerate(self.hosts):
            port = self.port(number)
            self.ip("link", "add", "card", "netns", host, "type", "veth", "peer", "name", port, "netns", self.hub)
            self.ip_there(number, "addr", "add", f"{self.ips[number]}/24", "dev", "card")
            for card in ("card", "lo"):
                self.ip_there(number, "link", "set", card, "up")
            self.ip("-n", self.hub, "link", "set", port, "master", "switch", "up")
        self.ip("netns", "exec", self.hub, "true")

    @staticmethod
    def ip(*words):
        refused = ip(*words)
        if refused:
            raise OSError(refused)

    def ip_there(self, number, *words):
        self.ip("-n", self.hosts[number], *words)

    def port(self, number):
        """The switch's side of a host's cable."""
        return f"port{number}"

    def set_cable(self, number, how):
        """`how`: "up" or "down"."""
        self.ip("-n", self.hub, "link", "set", self.port(number), how)

    def set_rate(self, number, rate):
        """Lets a host send so much and no more: "4gbit"."""
        there = ["tc", "-n", self.hosts[number], "qdisc", "replace", "dev", "card", "root", "tbf"]
        done = subprocess.run([*there, "rate", rate, "burst", "1mb", "latency", "50ms"], capture_output=True, text=True)
        if done.returncode != 0:
            raise OSError(f"no rate of {rate}: {done.stderr.strip()}")

    def there(self, number):
        """What comes before a command that is to run on a host."""
        return ["ip", "netns", "exec", self.hosts[number]]

    def enter(self, number):
        """Moves the calling thread, or the only thread of a process, to a host."""
        with open(f"/run/netns/{self.hosts[number]}") as host:
            if ctypes.CDLL(None, use_errno=True).setns(host.fileno(), CLONE_NEWNET) != 0:
                raise OSError(os.strerror(ctypes.get_errno()))

    def close(self):
        for host in (self.hub, *self.hosts):
            ip("netns", "del", host)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def why_not():
    """What keeps us from having hosts of our own; empty if nothing does."""
    try:
        with NetworkHosts(1):
            return ""
    except OSError as reason:
        return str(reason)


if __name__ == "__main__":
    name, address, *words = sys.argv[1:]
    host = f"{name}-{int(address.split('.')[-1]) - 1}"
    os.execvp("ip", ["ip", "netns", "exec", host, "sh", "-c", " ".join(words)])
