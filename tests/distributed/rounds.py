"""A round of soak: a training of several processes with faults at random moments, checked against the promises of docs/reliability.md."""
import collections, contextlib, dataclasses, os, random, re, shutil, signal, subprocess, tempfile, time
from elastic import Worker
from network import ENDS_WITH_ME, host, nothing_from, nothing_to, proxy
from strangers import KINDS, start_crowd
from system_faults import SystemFaults
from workers import check, configurations, digest, finish, free_ports, kill_started, line_of, start

LEAVES = 4
SECRET = os.urandom(16).hex()
OWN_NETWORK = ('short_partition', 'long_partition', 'broken_connections', 'delay')  # these need hosts of their own
FAULTS = ('kill', 'short_stop', 'long_stop', *OWN_NETWORK, 'slow_disk', 'full_disk', 'clock_step', 'strangers')
HARMLESS = ('short_stop', 'short_partition', 'delay', 'slow_disk', 'clock_step', 'strangers')
DISK = '16m'  # the size of a file system that can be filled


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str
    at_start: bool  # otherwise once all train
    after: float
    victim: tuple = ()  # such as ('worker', 1); empty: all
    seconds: float = 0  # duration
    size: float = 0
    how: str = ''
    again_after: float = -1  # the victim is started again

    def __str__(self):
        said = [self.kind.replace('_', ' '), 'of {} {}'.format(*self.victim) if self.victim else '', f'{self.after:.2f} s after ' + ('the start' if self.at_start else 'all train'),
                f'for {self.seconds:.2f} s' if self.seconds else '', f'by {self.size:.3g}' if self.size else '', self.how, f'again after {self.again_after:.2f} s' if self.again_after >= 0 else '']
        return ' '.join(filter(None, said))


class MultiWorker:
    """multi_worker_mirrored with backup_and_restore in the chief. When it ends with an error, all are started again."""
    program, servers = 'resume', False

    def __init__(self, r, elastic=False):
        self.elastic = elastic
        self.members = [('worker', i) for i in range(r.choice((2, 3, 4)))]
        self.strategy = 'multi_worker' + r.choice(('', '_tcp') if elastic else ('', '_tcp', '_zero', '_tcp_zero')) + ('_elastic' if elastic else '')
        self.pause = r.choice((50, 80, 120))  # ms in each of 24 steps
        self.lasts = 0.024 * self.pause  # seconds
        self.chief = ('worker', 0)
        self.restartable = self.members[1:] if elastic else []
        self.savers = self.listeners = [self.chief]
        self.long = (4.5, 6)  # seconds; three heartbeats are 3

    def arguments(self, member, folder):
        return [folder if member == self.chief else f'{folder}-of-{member[1]}', self.strategy, 1, LEAVES, self.pause]

    environment = {'HEARTBEAT': '1000', 'START': '8', 'TIMEOUT': '10000'}

    def want(self, scratch):
        return digest(alone('resume', os.path.join(scratch, 'alone'), 'one_device', 1, LEAVES, 0))

    def check_result(self, member, out, late, scratch):
        want = self.want(scratch)
        if late:  # its history begins where it joined
            check(digest(out).split()[-1] == want.split()[-1], f'{member} has other weights than {want}: {out}')
        else:
            check(digest(out) == want, f'{member} has not {want}: {out}')

    def names(self, member):
        return rf'\b(worker|process) {member[1]}\b' + ('|the coordinator at' if member == self.chief else '')

    def may_fail(self, member, hurt, early):
        """Whether a member may end with an error because of these victims."""
        return early or not self.elastic or self.chief in hurt or member in hurt

    def files_of_error(self):
        return r'(snapshot(\.previous|\.new)?\.safetensors|snapshot\.lock|\.strata-.*)'

    def uses_network(self):
        self.strategy = self.strategy.replace('multi_worker', 'multi_worker_tcp').replace('_tcp_tcp', '_tcp')

    def prepare_next(self, folder):
        pass


class Mesh(MultiWorker):
    """multi_worker_mesh: two groups, each with one copy of the network, of two workers or, with stages and parts of layers, of four."""
    program = 'stages'

    def __init__(self, r, elastic=False, places=2):
        super().__init__(r, elastic)
        self.places = places
        self.members = [('worker', i) for i in range(2 * places)]
        self.strategy = (r.choice(('pipelines_workers', 'mesh_workers')) if places == 2 else 'cube_workers') + r.choice(('', '_tcp'))
        self.restartable = self.members[1:] if elastic else []
        self.environment = MultiWorker.environment | {'PAUSE': str(self.pause), 'ELASTIC': str(places) if elastic else '0'} | self.decides

    decides = {'EPOCHS': '5'}  # 25 steps

    def arguments(self, member, folder):
        return [self.strategy, folder if member == self.chief else f'{folder}-of-{member[1]}']

    def check_result(self, member, out, late, scratch):
        want = digest(alone('stages', 'one_device', **self.decides))
        check(digest(out).split()[1] == want.split()[1] if late else digest(out) == want, f'{member} has not {want}: {out}')

    def may_fail(self, member, hurt, early):
        lost = [{('worker', p), ('worker', p + self.places)} for p in range(self.places)]  # all that have the same part
        return super().may_fail(member, hurt, early) or any(part <= hurt for part in lost)

    def uses_network(self):
        self.strategy = self.strategy.removesuffix('_tcp') + '_tcp'


class ParameterServer:
    program, servers = 'ps_task', True

    def __init__(self, r, mode):
        self.mode, self.synchronous = mode, mode == 'synchronous'
        self.chief = ('chief', 0)
        self.savers = self.listeners = [('ps', i) for i in range(r.choice((1, 2)))]
        workers = [('worker', i) for i in range(r.choice((0, 1, 2)))]
        self.members = [self.chief, *workers, *self.savers]
        self.pause = r.choice((30, 50, 80))  # ms
        self.lasts = 0.04 * self.pause  # seconds, from the 20th of 60 steps
        self.restartable = self.members[1:]
        self.long = (6, 14)  # seconds; one that hangs is gone after 4, and a worker after 5 more
        self.epochs = 6 if self.synchronous else 6 * (1 + len(workers))

    def arguments(self, member, folder):
        return [self.mode, LEAVES, self.epochs, self.pause]

    environment = {'START': '8', 'RETRY': '4'}

    def want(self):
        return alone('ps_task', 'one_device', LEAVES, self.epochs)

    def check_result(self, member, out, late, scratch):
        if member[0] == 'ps':
            return
        if self.synchronous:
            check(digest(out) == digest(self.want()), f'{member} has not {digest(self.want())}: {out}')
        elif not late:
            first, last = (float(line_of(self.want(), 'first').split()[i]) for i in (1, 3))
            mine = float(line_of(out, 'first').split()[3])
            check(mine < last + 0.5 * (first - last), f'the loss of {member} fell only to {mine}, from {first}; on one device to {last}')

    def names(self, member):
        rank = {'chief': 0, 'worker': member[1] + 1}.get(member[0])
        return rf'\b{member[0]} {member[1]}\b' + (rf'|\(rank {rank}\b' if rank is not None else '|snapshots? of')

    def may_fail(self, member, hurt, early):
        if early or self.synchronous or member in hurt:
            return True
        return any(h[0] == 'ps' for h in hurt) or (member[0] == 'ps' and self.chief in hurt)

    def files_of_error(self):
        return r'(ps_\d(\.previous|\.new)?\.snapshot|ps_\d\.lock|\.strata-.*)'

    def uses_network(self):
        pass

    def prepare_next(self, folder):
        if self.synchronous:  # its program does not continue from the step of the servers
            shutil.rmtree(folder, ignore_errors=True)


STRATEGIES = {
    'multi_worker_mirrored': MultiWorker,
    'multi_worker_mirrored_elastic': lambda r: MultiWorker(r, elastic=True),
    'multi_worker_mesh': Mesh,
    'multi_worker_mesh_elastic': lambda r: Mesh(r, elastic=True),
    'multi_worker_mesh_of_three_parts': lambda r: Mesh(r, places=4),
    **{f'parameter_server_{mode}': lambda r, mode=mode: ParameterServer(r, mode) for mode in ('synchronous', 'bounded', 'asynchronous')},
}


class Plan:
    """All random decisions of a round, so that its seed and its number repeat it, except for timing."""

    def __init__(self, seed, number, strategies, faults):
        r = random.Random(f'{seed} {number}')
        self.name = r.choice(strategies)
        self.training = STRATEGIES[self.name](r)
        kinds = r.sample(faults, min(len(faults), r.choice((1, 1, 2, 3))))
        self.attempts = [[self.fault(r, kind) for kind in kinds] for _ in range(r.choice((1, 1, 2)))]
        self.on_hosts = any(kind in OWN_NETWORK for kind in kinds)
        if self.on_hosts:
            self.training.uses_network()

    def fault(self, r, kind):
        t = self.training
        at_start = r.random() < 0.2
        after, victim, seconds, size, how, again = r.uniform(0, 0.5 if at_start else t.lasts), r.choice(t.members), 0, 0, '', -1
        if kind == 'kill' and r.random() < 0.1:
            victim = ()
        if kind == 'kill' and victim in t.restartable and r.random() < 0.6:
            again = r.uniform(0, 2)
        if kind.endswith('partition'):
            how = r.choice(('', '', 'nothing reaches it', 'nothing comes from it'))
        if kind.startswith('short'):
            seconds = r.uniform(0.1, 1 if kind == 'short_stop' else 0.7)
        if kind.startswith('long'):
            seconds = r.uniform(*t.long)
        if kind == 'delay':
            at_start, after, victim, size = True, 0, (), r.choice((0.002, 0.01, 0.03))
        if kind in ('broken_connections', 'full_disk'):
            victim = ()
        if kind == 'full_disk':
            seconds = r.uniform(0.2, 4)
        if kind == 'slow_disk':
            victim, size = r.choice(t.savers), r.choice((0.05, 0.2, 0.5))
        if kind == 'clock_step':
            victim, size = r.choice((victim, ())), r.choice((-1, 1)) * 10 ** r.uniform(0, 8.5)  # s, up to ten years
        if kind == 'strangers':
            victim, size, how = (), r.choice((20, 60, 200)), r.choice(sorted(KINDS))
        return Fault(kind, at_start, after, victim, seconds, size, how, again)

    def __str__(self):
        t = self.training
        lines = [f'{self.name}: ' + ', '.join('{} {}'.format(*m) for m in t.members) + (', on hosts of their own' if self.on_hosts else '')]
        return '\n'.join(lines + [f'attempt {i}: {fault}' for i, faults in enumerate(self.attempts) for fault in faults])


results_alone = {}


def alone(program, *arguments, **environment):
    """The output of an undisturbed training on one device."""
    key = (program, *arguments, *environment.items())
    if key not in results_alone:
        results_alone[key] = finish([start(arguments, program=program, **environment)])[0]
    return results_alone[key]


class Place:
    """A folder, hosts, and a name for all processes of this program. The folder is a small file system, if that is permitted."""

    def __init__(self, why_no_network):
        self.why_no_network, self.hosts = why_no_network, []
        self.folder = tempfile.TemporaryDirectory()
        mounted = not why_no_network and subprocess.run(['mount', '-t', 'tmpfs', '-o', f'size={DISK}', 'tmpfs', self.folder.name], capture_output=True, text=True)
        self.why_no_disk = why_no_network or mounted.stderr.strip()
        self.mark = f'soak-{os.getpid()}'

    def why_not(self, kind):
        return self.why_no_network if kind in OWN_NETWORK else self.why_no_disk if kind == 'full_disk' else None

    def first_hosts(self, count):
        while len(self.hosts) < count:
            self.hosts.append(host(len(self.hosts)))
        return self.hosts[:count]

    def strays(self):
        """Processes of a training that still exist."""
        found = []
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/environ', 'rb') as environment, open(f'/proc/{pid}/cmdline', 'rb') as command:
                    if f'STRATA_SOAK={self.mark}\0'.encode() in environment.read():
                        found.append(pid + ' ' + command.read().replace(b'\0', b' ').decode())
            except OSError:
                pass
        return found

    def close(self):
        for h in self.hosts:
            h.first.kill()
            h.first.wait()
        if not self.why_no_disk:
            subprocess.run(['umount', self.folder.name], check=True)
        self.folder.cleanup()


def stacks_of(pid):
    if not shutil.which('gdb'):
        return 'no gdb to show its stacks'
    try:
        out = subprocess.run(['gdb', '-p', str(pid), '-batch', '-ex', 'thread apply all backtrace 12'], capture_output=True, text=True, timeout=60).stdout
    except subprocess.TimeoutExpired:
        return 'gdb has not answered'
    return '\n'.join(line[:200] for line in out.splitlines() if re.match(r'Thread|#', line))


class Attempt:
    """The processes of a training from their start until all have ended, and the faults that hit them."""

    def __init__(self, place, plan, number, folder, ports, faults, deadline, count):
        self.place, self.training, self.number, self.folder, self.deadline, self.count = place, plan.training, number, folder, deadline, count
        self.hurt, self.early = set(), False  # members that may end with an error, or may name others that do
        self.runs = collections.defaultdict(list)  # one for each start of each member
        self.killed, self.undo, self.due, self.lost_crowds = set(), {}, [], 0
        self.systems = {m: SystemFaults() for m in self.training.members}
        members, t = self.training.members, self.training
        self.hosts = dict(zip(members, place.first_hosts(len(members)))) if plan.on_hosts and not place.why_no_network else {}
        self.address = {m: f'{self.hosts[m].address if self.hosts else "127.0.0.1"}:{ports[m]}' for m in members}
        self.configs = configurations({role: [self.address[m] for m in members if m[0] == role] for role in dict(members)})
        self.faults, self.proxy = faults, None
        self.environment = t.environment | {'STRATA_SOAK': place.mark, 'STRATA_SECRET': SECRET, 'STRATA_RUN_ID': f'{place.mark}-{folder.rpartition("-")[2]}-{number}',
                                            'TMPDIR': os.path.join(place.folder.name, 'tmp')} | ({'SNAPSHOTS': folder} if t.servers else {})

    def launch(self, member):
        within = self.hosts[member].within(own_processes=False) if self.hosts else ENDS_WITH_ME
        self.runs[member].append(Worker(self.training.arguments(member, self.folder), self.configs[member], program=self.training.program, within=within,
                                        **self.environment, **self.systems[member].environment))

    def process(self, member):
        return self.runs[member][-1].process

    def alive(self, member):
        return self.process(member).poll() is None

    def under_way(self):
        return all(m[0] == 'ps' or not self.alive(m) or any('under way' in line for _, line in list(self.runs[m][-1].lines)) for m in self.training.members)

    def over(self):
        return not any(self.alive(m) for m in self.training.members)

    def later(self, seconds, act):
        self.due.append((time.monotonic() + seconds, act))

    def finally_(self, what):
        """Registers a call that happens exactly once: when the returned function is called, or at the end."""
        key = object()
        self.undo[key] = what
        return lambda: self.undo.pop(key, lambda: None)()

    def run(self):
        try:
            delays = [f.size for f in self.faults if f.kind == 'delay']
            if self.hosts and (delays or any(f.kind == 'broken_connections' for f in self.faults)):
                self.proxy = proxy('', delay=sum(delays))
                self.proxy.__enter__()
                self.finally_(self.proxy.__exit__)
            for m in self.training.members:
                self.launch(m)
            for fault in self.faults:
                if fault.at_start:
                    self.later(fault.after, lambda f=fault: self.begin(f))
            waits = [f for f in self.faults if not f.at_start]
            while not self.over():
                if waits and self.under_way():
                    for fault in waits:
                        self.later(fault.after, lambda f=fault: self.begin(f))
                    waits = []
                now = time.monotonic()
                due, self.due = [act for t, act in self.due if t <= now], [(t, act) for t, act in self.due if t > now]
                for act in due:
                    act()
                if now > self.deadline:
                    raise AssertionError('still running at the end of the time for a round:\n' + '\n'.join(
                        f'{m}, {self.process(m).pid}: {stacks_of(self.process(m).pid)}' for m in self.training.members if self.alive(m)))
                time.sleep(0.01)
        finally:
            for key in list(self.undo):
                self.undo.pop(key)()

    def harm(self, *members):
        self.early = self.early or not self.under_way()
        self.hurt.update(members)

    def begin(self, fault):
        if self.place.why_not(fault.kind) or (fault.victim and not self.alive(fault.victim)):
            return
        self.count[fault.kind] += 1
        if fault.kind not in HARMLESS:
            whole_disk = [] if self.training.servers else self.training.savers
            self.harm(*([fault.victim] if fault.victim else whole_disk if fault.kind == 'full_disk' else self.training.members))
        getattr(self, fault.kind.replace('short_', '').replace('long_', ''))(fault)

    def kill(self, fault):
        runs = [self.runs[m][-1] for m in ([fault.victim] if fault.victim else self.training.members)]
        for run in runs:
            run.process.kill()
            self.killed.add(run)
        for run in runs:
            run.process.wait()
        if fault.again_after >= 0:
            self.later(fault.again_after, lambda: self.over() or self.launch(fault.victim))

    def stop(self, fault):
        process = self.process(fault.victim)
        process.send_signal(signal.SIGSTOP)
        self.later(fault.seconds, self.finally_(lambda: process.send_signal(signal.SIGCONT)))

    def partition(self, fault):
        place = self.hosts[fault.victim]
        silence = contextlib.ExitStack()
        for words, rules in (('nothing comes from it', nothing_from(place)), ('nothing reaches it', nothing_to(place))):
            if fault.how in ('', words):
                silence.enter_context(rules)
        self.later(fault.seconds, self.finally_(silence.close))

    def broken_connections(self, _):
        self.proxy.cut()

    def delay(self, _):
        pass  # from the start, by the proxy

    def slow_disk(self, fault):
        self.systems[fault.victim].slow_disk(fault.size)

    def full_disk(self, fault):
        name = os.path.join(self.place.folder.name, 'filler')
        with open(name, 'wb', buffering=0) as file:
            for size in (1 << 16, 1 << 10, 1):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass
        self.later(fault.seconds, self.finally_(lambda: os.remove(name)))

    def clock_step(self, fault):
        for member in [fault.victim] if fault.victim else self.training.members:
            self.systems[member].set_clock(fault.size)
        self.later(1, lambda: [s.set_clock(-fault.size / 2) for m, s in self.systems.items() if fault.victim in ((), m)])

    def strangers(self, fault):
        for member in self.training.listeners:
            where, _, port = self.address[member].rpartition(':')
            crowd = start_crowd(where, port, fault.how, int(fault.size))
            self.finally_(lambda c=crowd: self.end(c))

    def end(self, crowd):
        self.lost_crowds += crowd.poll() is not None
        crowd.kill()
        crowd.communicate()

    def judge(self):
        """Whether the training has ended as it should; fails if a promise is broken."""
        t = self.training
        check(not self.lost_crowds, 'a process that floods the ports has ended by itself')
        for member, runs in self.runs.items():
            for n, run in enumerate(runs):
                late, out, status = n > 0, run.finish(), run.process.returncode
                check('damaged' not in out, f'{member}: {out}')
                if run in self.killed:
                    continue
                if status == 0:
                    t.check_result(member, out, late, self.place.folder.name)
                    continue
                errors = [line for line in out.splitlines() if line.startswith(('communication_error: ', 'error: '))]
                check(status in (2, 3) and len(errors) == 1 and out.strip().endswith(errors[0]), f'{member} ends with status {status} without one clear error: {out}')
                check(self.hurt and (late or t.may_fail(member, self.hurt, self.early)), f'{member} should not have failed: {out}')
                is_cause = late or member in self.hurt
                names = [t.names(h) for h in (t.members if is_cause else self.hurt)] + ['chief 0 has not reported'] * (member[0] == 'ps')
                if is_cause:
                    names += ['without this process', 'cannot write', 'no worker has registered']
                check(any(re.search(name, errors[0]) for name in names), f'{member} names none of {self.hurt}: {out}')
        return self.runs[t.chief][-1] not in self.killed and self.process(t.chief).returncode == 0

    def report(self):
        return '\n'.join(f'--- {m}, attempt {self.number}, start {n}, status {run.process.returncode}:\n' + '\n'.join(run.output().splitlines()[-12:])
                         for m, runs in self.runs.items() for n, run in enumerate(runs))


def run_round(place, plan, number, count, limit):
    """Runs a round; fails if a promise is broken, otherwise returns the output of its processes."""
    t, scratch = plan.training, place.folder.name
    folder, deadline, attempts = os.path.join(scratch, f'round-{number}'), time.monotonic() + limit, []
    os.makedirs(os.path.join(scratch, 'tmp'), exist_ok=True)
    ports = dict(zip(t.members, free_ports(len(t.members))))
    try:
        for n, faults in enumerate([*plan.attempts, []]):
            attempt = Attempt(place, plan, n, folder, ports, faults, deadline, count)
            attempts.append(attempt)
            attempt.run()
            done = attempt.judge()
            left = place.strays()
            check(not left, f'processes that are left: {left}')
            files = os.listdir(folder) if os.path.isdir(folder) else []
            strange = [f for f in files if not re.fullmatch(t.files_of_error(), f)]
            check(not strange, f'files that should not be there: {strange}')
            others = set(os.listdir(scratch)) - {os.path.basename(folder), 'tmp'}
            check(not others and not os.listdir(os.path.join(scratch, 'tmp')), f'files that should not be there: {others}, {os.listdir(os.path.join(scratch, "tmp"))}')
            if done:
                check(not files or (t.servers and attempt.hurt), f'files of a training that has ended: {files}')
                return '\n'.join(a.report() for a in attempts)
            t.prepare_next(folder)
        raise AssertionError('the training has not succeeded although nothing disturbs it any more')
    except Exception as problem:
        kind = '' if isinstance(problem, AssertionError) else type(problem).__name__ + ': '
        raise AssertionError('\n'.join([kind + str(problem), str(plan), *(a.report() for a in attempts)])) from None
    finally:
        kill_started()
        shutil.rmtree(folder, ignore_errors=True)
