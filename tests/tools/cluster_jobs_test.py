# SPDX-License-Identifier: Apache-2.0
# Goal: a job of several processes comes to the same bits as one of one process, and whatever happens to its processes
# and its network ends with one clear line, the exit code that is documented, and nobody left over.
# Method: real processes on this machine, killed, frozen, misled and flooded.  Usage: cluster_jobs_test.py PATH/TO/troupe
import contextlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from job_processes import (A_BACKUP, ALL_FOUR, FOR_EVER, OPEN_MPI, TIMEOUT, PLAIN, TROUPE, WATCHED, Job, Process, SideBySide,
                           addresses, free_ports)
from played_kubernetes import kubernetes


def is_open(address):
    """Whether somebody listens there."""
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port))):
        return True
    return False


def answer_all(door):
    """Says to everybody who comes what a web server would."""
    with contextlib.suppress(OSError):
        while True:
            guest, _ = door.accept()
            with guest:
                guest.sendall(b"HTTP/1.1 400 Bad Request\r\nServer: another program\r\nContent-Length: 0\r\n\r\n")
                while guest.recv(1 << 16):
                    pass


class Gap:
    """What lies between a process and an address: it passes everything on, until it swallows it and says nothing."""

    def __init__(self, test, address):
        host, port = address.split(":")
        self.beyond = (host, int(port))
        self.swallows = threading.Event()
        self.door = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.door.getsockname()[1]}"
        test.addCleanup(self.door.close)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.door.accept()
                try:
                    far = socket.create_connection(self.beyond)
                except OSError:
                    near.close()
                    continue
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self.pass_on, args=(one, other), daemon=True).start()

    def pass_on(self, one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 16):
                if not self.swallows.is_set():
                    other.sendall(data)
        if not self.swallows.is_set():
            other.close()


class Agreement(Job):
    OPTIONS = ALL_FOUR + ["--steps", "60"]

    def launch(self, run, *options):
        command = [TROUPE, "launch", *options, "--", TROUPE, "train", *self.OPTIONS, "--run-dir", run]
        Process(self, run, command, PLAIN).ends(0)
        return self.trained(run)

    def test_replicas_in_one_process_and_in_many_come_to_the_same_bits(self):
        alone = self.alone(*self.OPTIONS)
        for workers in (2, 4):
            for ps in (0, 2):
                with self.subTest(workers=workers, ps=ps):
                    here = self.launch(f"{workers}-{ps}", "-n", str(workers), "--ps", str(ps))
                    self.assertEqual(here, alone)

    def test_processes_may_be_started_by_hand_in_any_order(self):
        alone = self.alone(*self.OPTIONS)
        cluster = addresses(chief=1, ps=1, worker=1)
        order = [self.start(cluster, task, *self.OPTIONS) for task in ("worker:0", "ps:0", "chief:0")]
        for process in order:
            process.ends(0)
        self.assertEqual(self.trained(), alone)

    def test_a_process_that_starts_seconds_later_is_waited_for(self):
        cluster = addresses(worker=2)
        chief = self.start(cluster, "worker:0", *self.OPTIONS)
        chief.says("cluster   worker 0 of 2 tasks")
        time.sleep(2)
        late = self.start(cluster, "worker:1", *self.OPTIONS)
        chief.ends(0)
        late.ends(0)

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_open_mpi_starts_a_job(self):
        base = free_ports(2)[0]
        command = ["mpirun", "--oversubscribe", "-np", "2", TROUPE, "train", *self.OPTIONS, "--run-dir", "run",
                   "--port-base", str(base)]
        Process(self, "mpirun", command, {**PLAIN, **OPEN_MPI}).ends(0)
        self.assertEqual(self.trained(), self.alone(*self.OPTIONS))

    def start_by_torchrun(self, count, of_machine, *options):
        """All processes, each told what torchrun would tell it."""
        port = free_ports(1 + count)[0]
        command = [TROUPE, "train", *self.OPTIONS, *options, "--run-dir", "run"]
        for rank in reversed(range(count)):
            names = {"RANK": rank, "LOCAL_RANK": rank % of_machine, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": of_machine,
                     "GROUP_RANK": rank // of_machine, "GROUP_WORLD_SIZE": count // of_machine, "MASTER_PORT": port}
            variables = {name: str(value) for name, value in names.items()}
            variables |= {"MASTER_ADDR": "127.0.0.1", "TORCHELASTIC_RUN_ID": "none"}
            Process(self, f"rank {rank}", command, {**PLAIN, **variables})
        for process in self.processes:
            process.ends(0)

    def test_the_variables_that_torchrun_sets_start_a_job(self):
        self.start_by_torchrun(2, 2)
        self.assertEqual(self.trained(), self.alone(*self.OPTIONS))

    def test_torchrun_starts_parameter_servers_on_the_first_of_two_machines(self):
        self.start_by_torchrun(6, 3, "--cluster", "chief=1;ps=2;worker=3")
        self.assertEqual(self.trained(), self.alone(*self.OPTIONS))

    def test_pods_that_are_all_started_alike_are_a_job(self):
        with kubernetes(chief={"job-0": "127.0.0.1"}, worker={"job-1": "127.0.0.2"}) as api:
            command = [TROUPE, "train", *self.OPTIONS, "--run-dir", "run", "--kubernetes",
                       "chief=app=chief;worker=app=worker", "--kubernetes-api", api, "--cluster", "chief=1;worker=1",
                       "--port-base", str(free_ports(1)[0])]
            pods = [Process(self, name, command, {**PLAIN, "HOSTNAME": name}) for name in ("job-1", "job-0")]
            for process in pods:
                process.ends(0)
        self.assertEqual(self.trained(), self.alone(*self.OPTIONS))

    def test_a_process_that_is_alone_does_not_mind_what_is_around_it(self):
        alone = self.alone(*self.OPTIONS)
        surroundings = [
            {"TF_CONFIG": ""}, {"TF_CONFIG": "{}"}, {"TF_CONFIG": '{"environment": "cloud"}'},
            {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "n[1-4]"}, {"PMIX_NAMESPACE": "x"},
            {"TORCHELASTIC_RUN_ID": "7", "MASTER_ADDR": "nowhere", "MASTER_PORT": "1"}, {"TROUPE_JOB_ID": "x"},
            {"TROUPE_HOSTS": "nowhere"}, {"NCCL_SOCKET_IFNAME": "nothing"},
        ]
        for number, variables in enumerate(surroundings):
            with self.subTest(variables=variables):
                command = [TROUPE, "train", *self.OPTIONS, "--run-dir", f"run-{number}"]
                process = Process(self, f"alone {number}", command, {**PLAIN, **variables})
                process.ends(0)
                self.assertNotIn("cluster ", process.errors())
                self.assertEqual(self.trained(f"run-{number}"), alone)


class Loss(Job):
    def begin(self, options, **counts):
        """A job that has made its first steps."""
        job = self.start_all(addresses(**counts), *options)
        chief = job["chief:0" if "chief" in counts else "worker:0"]
        chief.says("^step ")
        return job

    def test_a_worker_killed_is_named_and_a_backup_takes_its_place(self):
        job = self.begin(A_BACKUP + FOR_EVER + WATCHED, ps=1, worker=4)
        job["worker:2"].send(signal.SIGKILL)
        job["worker:0"].says("replica 2.*worker:2")
        job["worker:0"].makes_steps(10)
        job["worker:0"].send(signal.SIGINT)
        for name in ("worker:0", "worker:1", "worker:3", "ps:0"):
            job[name].ends(130 if name == "worker:0" else 0)

    def test_a_worker_killed_that_is_needed_ends_the_job_for_all(self):
        job = self.begin(ALL_FOUR + FOR_EVER, ps=1, worker=2)
        job["worker:1"].send(signal.SIGKILL)
        for name in ("worker:0", "ps:0"):
            job[name].ends(4, "worker:1")

    def test_a_killed_ps_ends_the_job_for_all(self):
        job = self.begin(ALL_FOUR + FOR_EVER, ps=2, worker=2)
        job["ps:1"].send(signal.SIGKILL)
        for name in ("worker:0", "worker:1", "ps:0"):
            job[name].ends(4, r"ps:1 \(127")
        evaluated = (self.folder / "run" / "evaluations.csv").read_text().splitlines()
        self.assertEqual(evaluated, ["step,seconds,bits_per_byte"])

    def test_a_killed_chief_ends_the_job_for_all(self):
        for counts in ({"chief": 1, "ps": 1, "worker": 1}, {"ps": 1, "worker": 2}):
            leader = "chief:0" if "chief" in counts else "worker:0"
            with self.subTest(leader=leader):
                job = self.begin(ALL_FOUR + FOR_EVER + WATCHED + ["--run-dir", leader], **counts)
                job[leader].makes_steps(2)
                time.sleep(1)  # so all have heard of a step that is not the first
                job.pop(leader).send(signal.SIGKILL)
                for process in job.values():
                    line = process.ends(4, rf"{leader} \(127", r"step \d+")
                    self.assertNotIn("step 0", line)

    def test_a_frozen_worker_is_gone_after_some_seconds_and_hears_of_it_when_it_goes_on(self):
        job = self.begin(A_BACKUP + FOR_EVER, ps=1, worker=4)
        job["worker:2"].send(signal.SIGSTOP)
        began = time.monotonic()
        job["worker:0"].says("replica 2.*worker:2")
        seconds = time.monotonic() - began
        self.assertGreater(seconds, 2)
        print(f"a frozen worker was reported after {seconds:.1f} s", file=sys.stderr)
        self.assertLess(seconds, 20)
        job["worker:2"].send(signal.SIGCONT)
        job["worker:2"].ends(4, "worker:0")
        job["worker:0"].send(signal.SIGINT)
        for name in ("worker:0", "worker:1", "worker:3", "ps:0"):
            job[name].ends(130 if name == "worker:0" else 0)

    def test_a_frozen_ps_ends_the_job(self):
        job = self.begin(ALL_FOUR + FOR_EVER, ps=1, worker=2)
        job["ps:0"].send(signal.SIGSTOP)
        began = time.monotonic()
        for name in ("worker:0", "worker:1"):
            job[name].ends(4, "ps:0")
        seconds = time.monotonic() - began
        self.assertGreater(seconds, 2)
        print(f"a job with a frozen ps was over after {seconds:.1f} s", file=sys.stderr)
        job["ps:0"].send(signal.SIGCONT)
        job["ps:0"].ends(4, "worker:0|ps:0.* is gone")  # what it has lost, or how the others' job ended
        self.assertNotIn("is refused", job["ps:0"].errors())

    def test_a_frozen_chief_ends_the_job_and_itself_when_it_goes_on(self):
        job = self.begin(ALL_FOUR + FOR_EVER + WATCHED, ps=1, worker=2)
        job["worker:0"].makes_steps(2)  # so that all have heard of one
        job["worker:0"].send(signal.SIGSTOP)
        for name in ("ps:0", "worker:1"):
            job[name].ends(4, "worker:0", r"step \d+")
        job["worker:0"].send(signal.SIGCONT)
        job["worker:0"].ends(4, "worker:1|ps:0")

    def test_a_job_frozen_as_a_whole_goes_on(self):
        job = self.begin(ALL_FOUR + ["--steps", "500"], ps=1, worker=2)
        for process in job.values():
            process.send(signal.SIGSTOP)
        time.sleep(4)
        for process in job.values():
            process.send(signal.SIGCONT)
        for process in job.values():
            process.ends(0)


    def test_a_connection_that_carries_nothing_any_more_is_noticed_at_both_ends(self):
        cluster = addresses(worker=4)
        gap = Gap(self, cluster["worker"][0])
        beyond = {"worker": [gap.address, *cluster["worker"][1:]]}
        options = A_BACKUP + FOR_EVER + ["--job-id", "half-open"]
        job = {f"worker:{i}": self.start(beyond if i == 2 else cluster, f"worker:{i}", *options) for i in range(4)}
        job["worker:0"].says("^step ")
        gap.swallows.set()
        job["worker:0"].says("replica 2.*worker:2.*nothing was heard of it")
        job["worker:2"].ends(4, r"worker:0 \(127.*nothing was heard of it")


class Beginning(Job):
    OPTIONS = ALL_FOUR + ["--steps", "300"]

    def test_a_task_that_never_starts_is_named_after_the_deadline(self):
        cluster = addresses(chief=1, ps=1, worker=3)
        waiting = [self.start(cluster, task, *self.OPTIONS) for task in ("ps:0", "worker:0", "worker:2")]
        waiting.append(self.start(cluster, "chief:0", *self.OPTIONS, "--start-deadline", "3"))
        for process in waiting:
            process.ends(3, "worker:1")
        self.assertFalse((self.folder / "run").exists())  # else the next attempt would be refused

    def test_a_deadline_or_a_window_that_is_none_is_refused(self):
        cluster = addresses(chief=1, worker=1)
        for given in ("--start-deadline -1", "--window 0", "--window much"):
            with self.subTest(given=given):
                option, value = given.split()
                said = self.start(cluster, "worker:0", *self.OPTIONS, option, value).ends(2, f"{option} must be .*'{value}'")
                self.assertIn("above 0", said)

    def test_a_chief_that_never_starts_is_named_after_the_deadline(self):
        cluster = addresses(chief=1, worker=1)
        self.start(cluster, "worker:0", *self.OPTIONS, "--start-deadline", "1").ends(3, "chief:0", "Connection refused")

    def test_a_task_at_a_host_that_there_is_not_is_named_with_it(self):
        cluster = addresses(worker=1)
        cluster["worker"].append("no.such.host.invalid:20000")
        self.start(cluster, "worker:0", *self.OPTIONS, "--start-deadline", "1").ends(
            3, r"for worker:1 \(no.such.host.invalid:20000\) to enter the job.*; .*host 'no.such.host.invalid'")

    def test_a_ps_that_never_starts_is_named_after_the_deadline(self):
        cluster = addresses(chief=1, ps=1)
        self.start(cluster, "chief:0", *self.OPTIONS, "--start-deadline", "1").ends(3, "ps:0")

    def test_an_address_without_an_answer_is_named_after_the_deadline(self):
        cluster = addresses(chief=1, worker=1)
        with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:  # connections wait there for ever
            cluster["chief"] = [f"127.0.0.1:{silent.getsockname()[1]}"]
            self.start(cluster, "worker:0", *self.OPTIONS, "--start-deadline", "2").ends(3, "chief:0", "it sends no hello")

    def test_another_program_at_an_address_is_named_after_the_deadline(self):
        cluster = addresses(worker=1)
        with socket.create_server(("127.0.0.1", 0)) as door:
            threading.Thread(target=answer_all, args=(door,), daemon=True).start()
            cluster["chief"] = [f"127.0.0.1:{door.getsockname()[1]}"]
            self.start(cluster, "worker:0", *self.OPTIONS, "--start-deadline", "2").ends(
                3, "waited 2.0 s .*chief:0 .*the peer is no node of Troupe")

    def test_a_second_process_with_the_same_index_is_refused_and_the_first_goes_on(self):
        cluster = addresses(chief=1, worker=1)
        job = self.start_all(cluster, *ALL_FOUR, *FOR_EVER)
        job["chief:0"].says("^step ")
        self.start(cluster, "worker:0", *ALL_FOUR, *FOR_EVER).ends(3, "chief:0", "two processes have the same task index")
        self.assertEqual(job["chief:0"].errors().count("two processes"), 1)
        job["chief:0"].send(signal.SIGINT)
        job["chief:0"].ends(130, "asked to stop after step")
        job["worker:0"].ends(0, "asked to stop after step")

    def test_a_second_process_at_the_same_port_is_refused_and_the_first_goes_on(self):
        cluster = addresses(chief=1, worker=1)
        job = self.start_all(cluster, *ALL_FOUR, "--steps", "600")
        job["chief:0"].says("^step ")
        self.start(cluster, "chief:0", *ALL_FOUR, "--steps", "600", "--run-dir", "other").ends(3, "another process")
        for process in job.values():
            process.ends(0)

    def test_a_process_of_another_job_or_cluster_is_refused_and_the_job_waits_on(self):
        cluster = addresses(chief=1, worker=1)
        chief = self.start(cluster, "chief:0", *self.OPTIONS, "--job-id", "one")
        self.start(cluster, "worker:0", *self.OPTIONS, "--job-id", "two").ends(3, "'one'", "'two'", "--job-id")
        ours = self.start(cluster, "worker:0", *self.OPTIONS, "--job-id", "one")
        for process in (chief, ours):
            process.ends(0)
        nameless = self.start(cluster, "chief:0", *self.OPTIONS, "--run-dir", "nameless")
        self.start({**cluster, **addresses(ps=1)}, "worker:0", *self.OPTIONS).ends(
            3, "chief:0 is of the job 'cluster-.*', not of 'cluster-.*'; give all tasks of a job the same --job-id")
        for process in (nameless, self.start(cluster, "worker:0", *self.OPTIONS)):
            process.ends(0)

    def test_a_process_with_other_options_ends_a_job_that_has_not_begun(self):
        for given, said in (("--seed 7", "seed = 7"), ("--replicas 2 --aggregate 2", "replicas = 2")):
            with self.subTest(given=given):
                cluster = addresses(chief=1, worker=1)
                chief = self.start(cluster, "chief:0", *self.OPTIONS)
                worker = self.start(cluster, "worker:0", *self.OPTIONS, *given.split())
                for process in (chief, worker):
                    process.ends(3, f"worker:0 .* has {said}", "same options")
                self.assertFalse((self.folder / "run").exists())

    def test_options_of_single_processes_may_differ(self):
        cluster = addresses(chief=1, worker=1)
        chief = self.start(cluster, "chief:0", *self.OPTIONS, *"--timeline-bytes 200000 --ledger-bytes 200000".split())
        for process in (chief, self.start(cluster, "worker:0", *self.OPTIONS, *"--keep-checkpoints 2".split())):
            process.ends(0)

    def test_a_process_with_other_variables_or_another_strategy_ends_a_job_that_has_not_begun_at_once(self):
        plain = "--text text --evaluate-every 0 --replicas 2".split() + ["--start-deadline", str(10 * TIMEOUT)]
        chiefs = [*plain, *"--policy latest_token --aggregate 2".split()]
        deeper, narrower = "--hidden 16,8".split(), "--hidden 16".split()
        one_layer, two_layers = ("--model", "transformer", "--layers", "1"), ("--model", "transformer", "--layers", "2")
        meeting = [*plain, "--strategy", "multi_worker_mirrored"]
        for first, second, said in (([*chiefs, *narrower], [*chiefs, *deeper], r"hidden = \[16, 8\], .* hidden = \[16\];"),
                                    ([*chiefs, *deeper], [*chiefs, *narrower], r"hidden = \[16\], .* hidden = \[16, 8\];"),
                                    ([*chiefs, *one_layer], [*chiefs, *two_layers], "layers = 2, .* layers = 1;"),
                                    (chiefs, meeting, 'strategy = "multi_worker_mirrored", .* strategy = "parameter_server";'),
                                    (meeting, chiefs, 'strategy = "parameter_server", .* strategy = "multi_worker_mirrored";')):
            with self.subTest(first=first, second=second):
                cluster = addresses(worker=2)
                for process in (self.start(cluster, "worker:0", *first), self.start(cluster, "worker:1", *second)):
                    process.ends(3, f"worker:1 .* has {said} .*same options")
                self.assertFalse((self.folder / "run").exists())

    def test_a_process_with_other_options_is_refused_by_a_job_that_has_begun_and_goes_on(self):
        cluster = addresses(ps=1, worker=4)
        job = self.start_all(cluster, *A_BACKUP, *FOR_EVER)
        job["worker:0"].says("^step ")
        job.pop("worker:2").send(signal.SIGKILL)
        job["worker:0"].says("lost replica 2")
        for given, said in (("--seed 7", "seed = 7"), ("--replicas 8", "replicas = 8"), ("--hidden 9", r"hidden = \[9\]"),
                            ("--hidden 16,8", r"hidden = \[16, 8\]")):
            with self.subTest(given=given):
                refused = self.start(cluster, "worker:2", *A_BACKUP, *FOR_EVER, *given.split())
                refused.ends(3, f"worker:2 .* has {said}", "same options")
        job["worker:0"].send(signal.SIGINT)
        for name, process in job.items():
            process.ends(130 if name == "worker:0" else 0, "asked to stop after step")

    def test_replicas_that_workers_cannot_share_evenly_are_refused_and_nothing_is_written(self):
        for process in self.start_all(addresses(worker=3), *self.OPTIONS).values():
            process.ends(2, "--replicas 4 cannot be shared evenly by 3 workers")
        self.assertFalse((self.folder / "run").exists())

    def test_options_are_checked_against_the_replicas_that_suit_the_cluster(self):
        cluster, options = addresses(worker=6), ("--policy", "latest_token", "--dump-config")
        self.start(cluster, "worker:0", "--aggregate", "5", *options).ends(0)
        self.start(cluster, "worker:0", "--min-replicas", "5", *options).ends(0)
        self.start(cluster, "worker:0", "--aggregate", "7", *options).ends(2, "--aggregate 7 can never be reached by 6 replicas")

    def test_a_process_with_another_model_batch_or_text_is_refused(self):
        (self.folder / "other").write_bytes(b"another text " * 200)
        for task, option, value, said in (("ps:0", "--hidden", "9", r"hidden = \[9\]"), ("ps:0", "--hidden", "16,8", r"hidden = \[16, 8\]"),
                                          ("worker:0", "--batch", "9", "batch = 9"),
                                          ("worker:0", "--text", "other", "a text of 2600 bytes")):
            with self.subTest(option=option):
                cluster = addresses(chief=1, ps=1, worker=1)
                more = {who: ["--start-deadline", str(TIMEOUT // 20)] for who in ("worker:0", "ps:0")} | {"chief:0": [], task: [option, value]}
                job = {who: self.start(cluster, who, *self.OPTIONS, "--run-dir", f"other{option}", *more[who])
                       for who in ("chief:0", "worker:0", "ps:0")}
                for who in ("chief:0", task):
                    job.pop(who).ends(3, f"{task} .* has {said}", "same options")
                for process in job.values():  # one that comes later may hear of the end only, or look for the chief in vain
                    process.ends(3, "same options|has ended the job|it has left|it leaves|Connection refused")

    def test_a_signal_while_it_waits_ends_a_process_at_once(self):
        cluster = addresses(chief=1, ps=1, worker=1)
        for task in ("chief:0", "worker:0", "ps:0"):
            with self.subTest(task=task):
                process = self.start(cluster, task, *self.OPTIONS, "--run-dir", task.replace(":", "-"))
                process.says("cluster   ")
                time.sleep(0.5)
                process.send(signal.SIGINT)
                process.ends(130, timeout=20)
                self.assertFalse((self.folder / task.replace(":", "-")).exists())


class Strangers(Job):
    def test_garbage_at_the_chiefs_port_disturbs_no_process(self):
        options = ALL_FOUR + ["--steps", "2000"]
        alone = self.alone(*options)
        cluster = addresses(chief=1, worker=1)
        job = self.start_all(cluster, *options)
        chief = job["chief:0"]
        chief.says("^step ")
        host, port = cluster["chief"][0].split(":")
        is_over = threading.Event()

        def connect():
            return socket.create_connection((host, int(port)), timeout=10)

        def throw_bytes():
            draw = random.Random(1)
            for _ in range(10):
                try:
                    with connect() as connection:
                        connection.sendall(draw.randbytes(1 << 20))
                except OSError:
                    pass  # hung up on, as it should be

        def drip_bytes():
            while not is_over.is_set():
                try:
                    with connect() as connection:
                        for byte in b"\x00" * 1000:
                            if is_over.wait(0.02):
                                return
                            connection.sendall(bytes([byte]))
                except OSError:
                    is_over.wait(0.05)

        def sit_idle():
            idle = []
            try:
                for _ in range(1000):
                    idle.append(connect())
                is_over.wait(TIMEOUT)
            except OSError:
                pass
            for connection in idle:
                connection.close()

        attackers = [threading.Thread(target=attack) for attack in (throw_bytes, drip_bytes, sit_idle)]
        for attacker in attackers:
            attacker.start()
        try:
            for process in job.values():
                process.ends(0)
        finally:
            is_over.set()
            for attacker in attackers:
                attacker.join()
        self.assertEqual(self.trained(), alone)


@unittest.skipUnless(shutil.which("openssl"), "no openssl")
class Tls(Job):
    OPTIONS = ALL_FOUR + ["--steps", "100"]

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem")

    def certificate(self, name, authority, days=2):
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
                     "-CAcreateserial", "-days", str(days), "-out", f"{name}.pem")

    def files(self, name, authority):
        return ["--tls-ca", f"{authority}.pem", "--tls-certificate", f"{name}.pem", "--tls-key", f"{name}.key"]

    def both(self, chief, worker, deadline="60"):
        """A chief that is there, and a worker that has just been started, and tries for that many seconds."""
        cluster = addresses(chief=1, worker=1)
        first = self.start(cluster, "chief:0", *self.OPTIONS, *chief)
        first.until(lambda: is_open(cluster["chief"][0]), "a port")
        return first, self.start(cluster, "worker:0", *self.OPTIONS, "--start-deadline", deadline, *worker)

    def are_parted(self, chief, worker, why, deadline="60"):
        """The worker says why it cannot reach the chief, and that one waits on."""
        chief, worker = self.both(chief, worker, deadline)
        worker.ends(3, "chief:0", why)
        chief.send(signal.SIGINT)
        chief.ends(130, "asked to stop")

    def test_certificates_of_one_authority_work(self):
        self.authority("ours")
        self.certificate("node", "ours")
        for process in self.both(*[self.files("node", "ours")] * 2):
            process.ends(0)

    def test_certificates_of_another_authority_are_refused(self):
        for name in ("ours", "theirs"):
            self.authority(name)
            self.certificate(f"{name}-node", name)
        self.are_parted(self.files("ours-node", "ours"), self.files("theirs-node", "theirs"), "certificate")

    def test_certificates_that_have_expired_are_refused(self):
        self.authority("ours")
        self.certificate("node", "ours")
        self.certificate("old", "ours", days=-1)
        with self.subTest("of the chief"):
            self.are_parted(self.files("old", "ours"), self.files("node", "ours"), "certificate has expired")
        with self.subTest("of a worker"):
            self.are_parted(self.files("node", "ours"), self.files("old", "ours"), "certificate")

    def test_tls_at_one_end_only_is_refused(self):
        self.authority("ours")
        self.certificate("node", "ours")
        deadline = str(TIMEOUT // 50)  # the worker tries until then
        for files in ((self.files("node", "ours"), []), ([], self.files("node", "ours"))):
            self.are_parted(*files, "TLS", deadline=deadline)

    def test_without_tls_no_process_listens_beyond_this_machine_unasked(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing, but tells which of our addresses would
            except OSError:
                self.skipTest("no address beyond loopback")
            host = probe.getsockname()[0]
        chief, worker = free_ports(2)
        cluster = {"chief": [f"{host}:{chief}"], "worker": [f"{host}:{worker}"]}
        self.start(cluster, "chief:0", *self.OPTIONS).ends(2, "without TLS", "--insecure-network")
        job = self.start_all(cluster, *self.OPTIONS, "--insecure-network", "--run-dir", "allowed")
        for process in job.values():
            process.ends(0)


class Launched(Job):
    def test_ctrl_c_ends_all_with_a_checkpoint_that_a_cluster_goes_on_from(self):
        command = [TROUPE, "launch", "-n", "2", "--ps", "1", "--", TROUPE, "train", *ALL_FOUR]
        first = Process(self, "first", [*command, *FOR_EVER, "--run-dir", "first"], PLAIN)
        first.says(r"\] step ")
        first.send(signal.SIGINT)
        first.ends(130)
        self.assertIn("[worker:0] troupe train: asked to stop after step", first.errors())
        name, _ = self.trained("first")
        steps = int(name.split("-")[1]) + 50
        more = ["--resume", "first", "--steps", str(steps), "--run-dir"]
        Process(self, "second", [*command, *more, "second"], PLAIN).ends(0)
        self.assertEqual(self.trained("second"), self.alone(*ALL_FOUR, *more[:-1]))


if __name__ == "__main__":
    unittest.main(testRunner=SideBySide())
