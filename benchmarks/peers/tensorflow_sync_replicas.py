# SPDX-License-Identifier: Apache-2.0
"""Steps of TensorFlow's own SyncReplicasOptimizer: an optimizer for each replica in one graph, which share accumulators and
token queue by name, a thread for each replica, and one for the chief.

tensorflow_sync_replicas.py pattern REPLICAS NEEDED DEAD SLOW UNIT STEPS   threads sleep for computing, UNIT seconds; SLOW says
    "0=1.7,1=2.3" or "-"; prints the seconds of each step
tensorflow_sync_replicas.py step REPLICAS VARIABLES ELEMENTS STEPS   no computing; prints the seconds of each step
"""

import os
import sys
import threading
import time

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
import tensorflow as tensorflow_2  # noqa: E402

tf = tensorflow_2.compat.v1
tf.disable_v2_behavior()


class Job:
    """A graph with what every replica runs."""

    def __init__(self, replicas, needed, variables, elements, momentum):
        self.step = tf.train.get_or_create_global_step()
        weights = [tf.get_variable(f'v{i}', initializer=tf.zeros([elements])) for i in range(variables)]
        given = tf.get_variable('given', initializer=tf.ones([elements]), trainable=False)
        self.optimizers, self.pushes = [], []
        for replica in range(replicas):
            # Only the chief's own optimizer makes the updates, so the others need no slots.
            inner = tf.train.MomentumOptimizer(0.01, 0.9) if momentum and replica == 0 else tf.train.GradientDescentOptimizer(0.01)
            optimizer = tf.train.SyncReplicasOptimizer(inner, replicas_to_aggregate=needed, total_num_replicas=replicas)
            self.pushes.append(optimizer.apply_gradients([(given.read_value(), weight) for weight in weights], global_step=self.step))
            self.optimizers.append(optimizer)
        self.session = tf.Session(config=tf.ConfigProto(inter_op_parallelism_threads=2 * replicas + 8))

    def start(self):
        chief = self.optimizers[0]
        self.session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        self.session.run([chief.chief_init_op] + [optimizer.local_step_init_op for optimizer in self.optimizers])
        self.session.run(chief.get_init_tokens_op())


def seconds_of_steps(job, live, steps, compute):
    chief = job.optimizers[0]
    synchronize = chief.get_chief_queue_runner().enqueue_ops[0]
    job.start()
    tf.get_default_graph().finalize()
    ended = threading.Event()
    go = threading.Barrier(len(live) + 1)

    def replica(number):
        run = job.session.make_callable(job.pushes[number])
        go.wait()
        while not ended.is_set():
            compute(number)
            try:
                run()
            except (tf.errors.CancelledError, RuntimeError):
                return

    for number in live:
        threading.Thread(target=replica, args=(number,), daemon=True).start()
    update = job.session.make_callable(synchronize)
    go.wait()
    moments = [time.perf_counter()]
    for _ in range(steps):
        update()
        moments.append(time.perf_counter())
    ended.set()
    return [after - before for before, after in zip(moments, moments[1:])]


def pattern(replicas, needed, dead, slow, unit, steps):
    factors = dict(part.split('=') for part in slow.split(',')) if slow != '-' else {}
    times = [float(unit) * float(factors.get(str(number), 1)) for number in range(int(replicas))]
    job = Job(int(replicas), int(needed), 1, 1, False)
    live = range(int(replicas) - int(dead))
    return seconds_of_steps(job, live, int(steps), lambda number: time.sleep(times[number]))


def step(replicas, variables, elements, steps):
    job = Job(int(replicas), int(replicas), int(variables), int(elements), True)
    return seconds_of_steps(job, range(int(replicas)), int(steps), lambda number: None)


if __name__ == '__main__':
    seconds = {'pattern': pattern, 'step': step}[sys.argv[1]](*sys.argv[2:])
    print('\n'.join(f'{each:.9f}' for each in seconds), flush=True)
    os._exit(0)  # replicas may wait for tokens that never come
