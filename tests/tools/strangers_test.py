# SPDX-License-Identifier: Apache-2.0
# Goal: a job with few files to open trains on, and saves, while strangers come to its doors faster than they are sent
# away.
# Method: a real job that may have 64 files and connections more than it has, and connections of ours that say nothing
# or nonsense, thousands at each of its addresses.
# Usage: strangers_test.py PATH/TO/troupe
import collections
import pathlib
import resource
import socket
import unittest

from job_processes import ALL_FOUR, Job, addresses

STRANGERS = 64  # as many as a node keeps
COMING = 3000
KEPT = 300  # of ours at a time


class Strangers(Job):
    def flood(self, host, word):
        """Comes again and again, and never leaves by itself before many others have come."""
        where, port = host.split(":")
        here = collections.deque()
        for _ in range(COMING):
            here.append(socket.create_connection((where, int(port))))
            try:
                here[-1].sendall(word)
            except OSError:
                pass  # it was shown the door before
            if len(here) > KEPT:
                here.popleft().close()
        for one in here:
            one.close()

    def test_a_job_with_few_files_trains_on_when_strangers_come(self):
        cluster = addresses(chief=1, worker=1, ps=1)
        everybody = self.start_all(cluster, *ALL_FOUR, "--steps", "6000", "--checkpoint-every", "50")
        everybody["chief:0"].says("step ")
        for one in everybody.values():
            number = one.process.pid
            has = len(list(pathlib.Path(f"/proc/{number}/fd").iterdir()))
            limit = has + STRANGERS + 16
            resource.prlimit(number, resource.RLIMIT_NOFILE, (limit, limit))
        for word in (b"", b"GET / HTTP/1.1\r\n" * 8):
            for hosts in (cluster["chief"], cluster["ps"]):
                self.flood(hosts[0], word)
        for one in everybody.values():
            one.ends(0)
            self.assertNotIn("Too many open files", one.errors())
        self.assertEqual(self.trained()[0], "checkpoint-6000")


if __name__ == "__main__":
    unittest.main()
