# SPDX-License-Identifier: Apache-2.0
# Goal: whatever happens to a worker, a parameter server or the chief of a job ends as docs/failures.md says: a late
# start, a request to stop, a slow link, a partition.
# Method: real processes, the last two on hosts that are network namespaces; skipped where there can be none.
# Usage: roles_test.py PATH/TO/troupe
import itertools
import signal
import time
import unittest

from job_hosts import Hosts
from job_processes import A_BACKUP, ALL_FOUR, FOR_EVER, Job, SideBySide, addresses

ROLES = ("worker:1", "ps:0", "chief:0")
TASKS = ("chief:0", "ps:0", "worker:0", "worker:1", "worker:2")


class OneMachine(Job):
    OPTIONS = ALL_FOUR + ["--steps", "100"]

    def test_a_process_that_starts_late_is_waited_for(self):
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

    def test_all_end_when_any_process_is_asked_to_stop_and_the_last_step_is_saved(self):
        for asked, how in itertools.product(ROLES, (signal.SIGTERM, signal.SIGINT)):
            with self.subTest(asked=asked, how=how.name):
                run = ["--run-dir", f"{asked.replace(':', '-')}-{how.name}"]
                job = self.start_all(addresses(chief=1, ps=1, worker=3), *ALL_FOUR, *FOR_EVER, *run)
                job["chief:0"].says("^step ")
                job[asked].send(how)
                for name, process in job.items():
                    process.ends(128 + how if name == asked else 0, "asked to stop after step")
                self.trained(run[1])


class ManyHosts(Hosts):
    TASKS = TASKS

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

    def test_a_process_that_is_back_soon_is_not_missed(self):
        options = ALL_FOUR + ["--steps", "600"]
        alone = self.alone(*options)
        for cut in ROLES:
            with self.subTest(cut=cut):
                run = cut.replace(":", "-")
                job = self.begin(run, options)
                job["chief:0"].says("^step ")
                self.cut(cut)
                time.sleep(0.3)  # what is sent meanwhile is sent again within a second
                self.restore(cut)
                for process in job.values():
                    process.ends(0)
                self.assertEqual(self.trained(run), alone)

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
                self.slow_down(slow)
                job = self.begin(slow.replace(":", "-"), options)
                for process in job.values():
                    process.ends(0)
                self.assertEqual(self.trained(slow.replace(":", "-")), alone)
                self.speed_up(slow)


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
