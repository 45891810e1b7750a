"""A training whose workers are lost, and started again, while it goes on. Shared by test_elastic.py and soak."""
import functools, statistics, threading, time
from workers import PATIENCE, check, configurations, digest, finish, free_ports, start, strategies

LEAVES = 4
expected_digests = {}


def expected(*what, **more):
    """The digest of a training on one device; arguments are network and epochs."""
    if (what, *more) not in expected_digests:
        network, epochs = what
        expected_digests[what, *more] = digest(finish([start([network, 'one_device', 1, LEAVES, epochs], **more)])[0])
    return expected_digests[what, *more]


class Worker:
    """A process whose lines are read as they arrive, with the time."""

    def __init__(self, *arguments, **more):
        self.process = start(*arguments, **more)
        self.lines = []
        self.said = threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.said:
                self.lines.append((time.time(), line.rstrip('\n')))
                self.said.notify_all()
        with self.said:
            self.lines.append((time.time(), ''))
            self.said.notify_all()

    def await_line(self, words, seconds=PATIENCE, after=0):
        """Returns when the process printed the words; fails if it ends before that."""
        def found():
            return next((t for t, line in self.lines if t > after and words in line), None)
        with self.said:
            self.said.wait_for(lambda: found() or (self.lines and self.lines[-1][1] == ''), seconds)
            check(found(), f'no "{words}" in: {self.output()}')
            return found()

    def output(self):
        return '\n'.join(line for _, line in self.lines)

    def first_step(self, after):
        """When the first step after a moment ended."""
        return next((float(line.split()[-1]) for _, line in self.lines if line.startswith('step') and float(line.split()[-1]) > after), None)

    def finish(self, seconds=PATIENCE):
        try:
            self.process.wait(seconds)
        except Exception:
            self.process.kill()
            check(False, f'still running after {seconds} s: {self.output()}')
        self.reader.join()
        return self.output()


class Training:
    """An elastic training; `pause`: the least milliseconds of a step. `returns`: restores the weights of the first epoch at the end."""

    def __init__(self, count, network='mlp', strategy='multi_worker', epochs=8, least=1, pause=25, heartbeat=2000, returns=False, **more):
        decides = {'RETURN': '1'} if returns else {}
        self.arguments = [network, strategy, 1, LEAVES, epochs]
        self.environment = {'ELASTIC': str(least), 'STEPS': str(pause), 'HEARTBEAT': str(heartbeat)} | decides | more
        self.want = expected(network, epochs, **decides)
        self.addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
        self.workers = [self.start(i) for i in range(count)]

    program = 'worker'

    def start(self, index, **more):
        return Worker(self.arguments, configurations({'worker': self.addresses})['worker', index], self.program, **(self.environment | more))

    @property
    def chief(self):
        return self.workers[0]

    def under_way(self):
        for w in self.workers:
            w.await_line('step 1 ')
        return self

    def name(self, index):
        return f'worker {index} (rank {index}, 127.0.0.1, pid {self.workers[index].process.pid})'

    def kill(self, *victims):
        """Kills workers. Returns the time."""
        for v in victims:
            self.workers[v].process.kill()
        return time.time()

    def check_bits(self, *of):
        for i in of or range(len(self.workers)):
            out = self.workers[i].finish()
            check(digest(out) == self.want, f'worker {i}: {out}')


class MeshTraining(Training):
    """An elastic training of two groups of two workers, by pipelines_workers or mesh_workers, with gradients clipped by norm."""
    program = 'stages'

    def __init__(self, strategy, epochs=6, least=2, pause=25, heartbeat=2000, **more):
        self.arguments = [strategy]
        self.environment = {'ELASTIC': str(least), 'PAUSE': str(pause), 'HEARTBEAT': str(heartbeat), 'EPOCHS': str(epochs)} | more
        self.want = expected_of_mesh(epochs)
        self.addresses = [f'127.0.0.1:{p}' for p in free_ports(4)]
        self.workers = [self.start(i) for i in range(4)]


@functools.cache
def expected_of_mesh(epochs):
    """The digest of a training of the network of meshes on one device."""
    return digest(finish([start(['one_device'], program='stages', EPOCHS=str(epochs))])[0])


class Times:
    """Times in seconds from the loss of a worker, or from the start of a late one."""

    def __init__(self):
        self.formed, self.went_on, self.joined = [], [], []
        self.too_late = 0

    def report(self):
        for what, times in (('the survivors are the next generation', self.formed), ('their next step ends', self.went_on),
                            ('a late worker ends its first step, from its start', self.joined)):
            if times:
                print(f'# {what}: median {statistics.median(times):.3f} s, at most {max(times):.3f} s, {len(times)} times')


def lose_one(chance, times):
    """Kills a random worker at a random moment; may start it again. Checks the bits of all that end."""
    count = chance.choice([2, 3, 4])
    training = Training(count, chance.choice(['mlp', 'normalized']), chance.choice(strategies())).under_way()
    victim = chance.randrange(1, count)
    time.sleep(chance.uniform(0, 0.4))
    others = [i for i in range(count) if i != victim]
    killed = training.kill(victim)
    formed = training.chief.await_line('generation 1 of the cluster: lost ' + training.name(victim), after=killed)
    times.formed.append(formed - killed)
    if chance.random() < 0.5:
        began = time.time()
        training.workers[victim] = late = training.start(victim)
        training.check_bits(*others)
        if late.first_step(0):
            training.check_bits(victim)
            times.joined.append(late.first_step(0) - began)
        else:  # the training was over first
            times.too_late += 1
    else:
        training.check_bits(*others)
    times.went_on.append(max(training.workers[i].first_step(formed) for i in others) - killed)
