# needs: openssl protozero
"""Parameter servers and workers as real processes: they train, in synchronous mode to the bits of one device, and report what went
wrong."""
import functools, itertools, os, pathlib, random, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time
import workers
from strangers import certificates, flood, to_parameter_server
from workers import PATIENCE, case, check, check_took, configurations, digest, finish_tests, free_ports, line_of, read_line, wait_until

start = functools.partial(workers.start, program='ps_task')
temporary_folder = functools.partial(tempfile.TemporaryDirectory, ignore_cleanup_errors=True)  # a server may write to it yet


class Cluster:
    """A chief, workers, and servers; proxy(port) returns the port through which workers reach a server."""

    def __init__(self, workers, ps, arguments, arguments_of=None, run_of=None, proxy=lambda port: port, host='127.0.0.1', more_of=None, **more):
        ports = free_ports(1 + workers + ps)
        self.ps_addresses = [f'{host}:{p}' for p in ports[1 + workers:]]
        seen = [f'{host}:{proxy(p)}' for p in ports[1 + workers:]]
        self.processes, self.starts = {}, {}
        members = {'chief': [f'127.0.0.1:{ports[0]}'], 'worker': [f'127.0.0.1:{p}' for p in ports[1:1 + workers]], 'ps': seen}
        for name, config in configurations(members).items():
            if name[0] == 'ps':
                config['cluster'] = config['cluster'] | {'ps': self.ps_addresses}
            own = {'STRATA_RUN_ID': (run_of or {}).get(name, 'test')} | more | (more_of or {}).get(name, {})
            self.starts[name] = functools.partial(start, (arguments_of or {}).get(name, arguments), config, **own)
            self.processes[name] = self.starts[name]()

    def restart(self, *names):
        """Kills processes with SIGKILL and starts them again."""
        for name in names:
            self.processes[name].kill()
            self.processes[name].communicate()
        for name in names:
            self.processes[name] = self.starts[name]()

    def wait_until_under_way(self):
        for (role, _), p in self.processes.items():
            if role != 'ps':
                line = read_line(p)
                check(line == 'under way\n', line)

    def wait_until_restored(self, index):
        line = read_line(self.processes[('ps', index)])
        check(line == f'ps {index} continues from its snapshot\n', line)

    def finish(self, seconds=PATIENCE, without=()):
        """The outputs and exit statuses of all processes."""
        deadline = time.monotonic() + seconds
        outputs, statuses = {}, {}
        for name, p in self.processes.items():
            if name in without:
                continue
            try:
                outputs[name] = p.communicate(timeout=max(0.1, deadline - time.monotonic()))[0]
            except subprocess.TimeoutExpired:
                for q in self.processes.values():
                    q.kill()
                outputs[name] = p.communicate()[0] + '\n(still running after %d s)' % seconds
            statuses[name] = p.returncode
        return outputs, statuses


class Proxy:
    """Forwards and counts bytes, but cuts each connection after some of them."""

    def __init__(self, port, low=1 << 40, high=1 << 41):
        self.target, self.low, self.high, self.cuts, self.passed = port, low, high, 0, 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(('127.0.0.1', self.target))
            except OSError:  # no process listens yet, or any more
                client.close()
                continue
            budget = [random.randrange(self.low, self.high)]
            for s in (client, server):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(a, b, budget), daemon=True).start()

    def pump(self, source, sink, budget):
        try:
            while data := source.recv(4096 if self.low < 1 << 40 else 1 << 18):
                budget[0] -= len(data)
                self.passed += len(data)
                if budget[0] < 0:
                    self.cuts += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for s in (source, sink):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def expected(leaves, epochs=2, **more):
    return start(['one_device', leaves, epochs], **more).communicate()[0]


def losses(output):
    words = line_of(output, 'first').split()
    return float(words[1]), float(words[3])


def check_all_well(outputs, statuses):
    for name, status in statuses.items():
        check(status == 0, f'{name} ends with status {status}:\n{outputs[name]}')


@case('asynchronous: a chief, a worker and 2 servers learn as fast as one device, and all end with status 0')
def _():
    first, last = losses(expected(4, 8))
    outputs, statuses = Cluster(1, 2, ['asynchronous', 4, 8]).finish()
    check_all_well(outputs, statuses)
    for name in (('chief', 0), ('worker', 0)):
        mine = losses(outputs[name])[1]
        check(mine < last + 0.3 * (first - last), f'{name}: {mine} instead of {last}, from {first}')


@case('one worker alone: the bits of one device')
def _():
    for leaves in (4, 3):  # 3 is no power of two
        alone = expected(leaves)
        outputs, statuses = Cluster(0, 2, ['asynchronous', leaves]).finish()
        check_all_well(outputs, statuses)
        check(digest(outputs[('chief', 0)]) == digest(alone), outputs)
        check('it has not waited' in alone and 'it has waited' in outputs[('chief', 0)], f'{alone} {outputs}')


@case('bounded staleness: 3 workers learn')
def _():
    first, last = losses(expected(4, 8))
    outputs, statuses = Cluster(2, 2, ['bounded', 4, 8]).finish()
    check_all_well(outputs, statuses)
    mine = min(losses(outputs[n])[1] for n in outputs if n[0] != 'ps')
    check(mine < last + 0.3 * (first - last), f'{mine} instead of {last}, from {first}')


@case('synchronous: 1, 2, 3 and 4 workers with 1, 2 and 3 servers: the bits of one device, losses too')
def _():
    want = digest(expected(4))
    for workers, ps in ((0, 2), (1, 1), (1, 2), (2, 3), (3, 2)):
        outputs, statuses = Cluster(workers, ps, ['synchronous', 4]).finish()
        check_all_well(outputs, statuses)
        for name, out in outputs.items():
            check(name[0] == 'ps' or digest(out) == want, f'{1 + workers} workers, {ps} servers, {name}: {out}')


@case('an optimizer with norms of whole parameters, synchronous: the bits of one device; asynchronous: it learns')
def _():
    want = digest(expected(4, LAMB='1'))
    check(want != digest(expected(4)), 'lamb trains as adam does')
    for workers, ps in ((0, 2), (2, 3)):
        outputs, statuses = Cluster(workers, ps, ['synchronous', 4], LAMB='1').finish()
        check_all_well(outputs, statuses)
        for name, out in outputs.items():
            check(name[0] == 'ps' or digest(out) == want, f'{1 + workers} workers, {ps} servers, {name}: {out}')
    outputs, statuses = Cluster(1, 2, ['asynchronous', 4, 4], LAMB='1').finish()
    check_all_well(outputs, statuses)


@case('tables, synchronous: 1, 2 and 3 workers with 1 and 2 servers: the bits of one device')
def _():
    want = digest(expected(4, WORDS='300'))
    for workers, ps in ((0, 1), (1, 2), (2, 2)):
        outputs, statuses = Cluster(workers, ps, ['synchronous', 4], WORDS='300').finish()
        check_all_well(outputs, statuses)
        for name, out in outputs.items():
            check(name[0] == 'ps' or digest(out) == want, f'{1 + workers} workers, {ps} servers, {name}: {out}')


@case('tables, asynchronous: workers learn')
def _():
    first, last = losses(expected(4, 4, WORDS='640'))
    for strategy in ('asynchronous', 'bounded'):
        outputs, statuses = Cluster(1, 2, [strategy, 4, 4], WORDS='640').finish()
        check_all_well(outputs, statuses)
        mine = min(losses(outputs[n])[1] for n in outputs if n[0] != 'ps')
        check(mine < last + 0.3 * (first - last), f'{strategy}: {mine} instead of {last}, from {first}')


@case('tables of 2,100,000 numbers: a batch of 64 moves some KB')
def _():
    clusters, proxies = {}, {}
    for what in itertools.product(('asynchronous', 'synchronous'), (640, 3840)):
        def proxy(port):
            proxies[what] = Proxy(port)
            return proxies[what].port

        clusters[what] = Cluster(0, 1, [what[0], 4, 1], proxy=proxy, WORDS=str(what[1]))
    for cluster in clusters.values():
        check_all_well(*cluster.finish())
    for strategy in ('asynchronous', 'synchronous'):
        few, many = (proxies[strategy, samples].passed for samples in (640, 3840))
        check(few > 2 * 2_100_000 * 4, f'{few} bytes in all: the weights have to be sent once in each direction')
        per_step = (many - few) / 50
        print(f'# {strategy}: {per_step:.0f} bytes per step')
        check(5_000 < per_step < 40_000, f'{strategy}: {per_step} bytes per step')


@case('connections that break all the time: pushes are repeated, each is applied once, and the bits stay those of one device')
def _():
    want = digest(expected(4))
    proxies = []

    def proxy(port):
        proxies.append(Proxy(port, 200_000, 900_000))
        return proxies[-1].port

    outputs, statuses = Cluster(1, 2, ['synchronous', 4], proxy=proxy).finish()
    for name, out in outputs.items():
        check(name[0] == 'ps' or digest(out) == want, f'{name}: {out}')
    check(sum(p.cuts for p in proxies) > 5, f'{[p.cuts for p in proxies]} cuts')


@case('asynchronous and bounded: kill -9 of a worker, and the others finish, the servers too')
def _():
    clusters = [Cluster(2, 2, [strategy, 4, 12, 5]) for strategy in ('asynchronous', 'bounded')]
    for cluster in clusters:
        cluster.wait_until_under_way()
        cluster.processes[('worker', 0)].send_signal(signal.SIGKILL)
    for cluster in clusters:
        check_all_well(*cluster.finish(without=[('worker', 0)]))


@case('asynchronous: kill -9 of the chief: the workers finish, the servers say why they end')
def _():
    cluster = Cluster(2, 2, ['asynchronous', 4, 12, 5])
    cluster.wait_until_under_way()
    cluster.processes[('chief', 0)].send_signal(signal.SIGKILL)
    outputs, statuses = cluster.finish(without=[('chief', 0)])
    for name, out in outputs.items():
        check(statuses[name] == 0 if name[0] == 'worker' else statuses[name] == 3 and 'chief 0 has not reported that the training is over' in out, f'{name}: {out}')


@case('synchronous: kill -9 of a worker: the others end within 8 s with an error that names it')
def _():
    cluster = Cluster(2, 2, ['synchronous', 4, 100000])
    cluster.wait_until_under_way()
    cluster.processes[('worker', 0)].send_signal(signal.SIGKILL)
    began = time.monotonic()
    gone = [('worker', 0), ('ps', 0), ('ps', 1)]
    outputs, _ = cluster.finish(without=gone)
    for name, out in outputs.items():
        check('communication_error: ' in out, out)
    check(any(re.search(r'communication_error: worker 0 \(rank 1, .*, pid \d+\) is gone', out) for out in outputs.values()), outputs)
    check_took(began, 8)


@case('kill -9 of a server: an error that names it and its address, within 5 s')
def _():
    clusters = [Cluster(1, 2, [strategy, 4, 100000]) for strategy in ('asynchronous', 'synchronous')]
    for cluster in clusters:
        cluster.wait_until_under_way()
    began = time.monotonic()
    for cluster in clusters:
        cluster.processes[('ps', 1)].send_signal(signal.SIGKILL)
    for cluster in clusters:
        outputs, _ = cluster.finish(without=[('ps', 0), ('ps', 1)])
        for out in outputs.values():
            check(f'communication_error: ps 1 at {cluster.ps_addresses[1]} is gone' in out, out)
        check_took(began, 5)


@case('a server that is stopped is named, too')
def _():
    cluster = Cluster(1, 2, ['asynchronous', 4, 100000])
    cluster.wait_until_under_way()
    cluster.processes[('ps', 0)].send_signal(signal.SIGSTOP)
    began = time.monotonic()
    outputs, _ = cluster.finish(without=[('ps', 0), ('ps', 1)])
    for out in outputs.values():
        check(f'communication_error: ps 0 at {cluster.ps_addresses[0]} is gone' in out, out)
    check_took(began, 15)


@case('a worker that trains something else is refused, with both named')
def _():
    cluster = Cluster(1, 1, ['asynchronous', 4, 100000], arguments_of={('worker', 0): ['asynchronous', 8, 100000]})
    outputs, statuses = cluster.finish(without=[('chief', 0), ('ps', 0)])
    out = outputs[('worker', 0)]
    check(statuses[('worker', 0)] == 2 and 'ps 0 does not train what this process does' in out and '4 leaves' in out and '8 leaves' in out, out)


@case('a worker whose optimizer has other settings is refused, with the setting')
def _():
    cluster = Cluster(1, 1, ['asynchronous', 4, 100000], more_of={('worker', 0): {'BETA_1_PERCENT': '80'}})
    outputs, statuses = cluster.finish(without=[('chief', 0), ('ps', 0)])
    out = outputs[('worker', 0)]
    check(statuses[('worker', 0)] == 2 and "it has 'beta_1 0.9' instead of 'beta_1 0.8'" in out, out)


@case('a worker of another run is refused')
def _():
    cluster = Cluster(1, 1, ['asynchronous', 4, 100000], run_of={('worker', 0): 'another'})
    outputs, statuses = cluster.finish(without=[('chief', 0), ('ps', 0)])
    out = outputs[('worker', 0)]
    check(statuses[('worker', 0)] == 2 and 'ps 0 belongs to another run' in out, out)


@case('a port in use')
def _():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        address = '127.0.0.1:%d' % s.getsockname()[1]
        out = start(['asynchronous', 4], {'cluster': {'chief': ['127.0.0.1:2223'], 'ps': [address]}, 'task': {'type': 'ps', 'index': 0}}).communicate(timeout=PATIENCE)[0]
        check(f'\nerror: the parameter server cannot listen on {address}: is the port in use?' in '\n' + out, out)


@case('a server that no worker can reach, and one that no worker comes to')
def _():
    addresses = ['127.0.0.1:%d' % p for p in free_ports(2)]
    chief, server = (start(['asynchronous', 4], {'cluster': {'chief': ['127.0.0.1:2223'], 'ps': [a]}, 'task': {'type': role, 'index': 0}}, START='2')
                     for role, a in zip(('chief', 'ps'), addresses))
    out = chief.communicate(timeout=PATIENCE)[0]
    check(out.startswith(f'communication_error: ps 0 at {addresses[0]} does not answer within 2000 ms'), out)
    out = server.communicate(timeout=PATIENCE)[0]
    check(out.startswith('communication_error: no worker has registered within 2 s'), out)


@case('no server in the cluster')
def _():
    out = start(['asynchronous', 4], {'cluster': {'chief': ['127.0.0.1:2223']}, 'task': {'type': 'chief', 'index': 0}}).communicate(timeout=PATIENCE)[0]
    check(out.startswith('error: parameter_server: the cluster has no ps'), out)


def time_of(file):
    """When a file was modified; 0 if it does not exist."""
    try:
        return os.stat(file).st_mtime_ns
    except FileNotFoundError:
        return 0


def wait_until_saved(folder, seconds=PATIENCE):
    """Waits until the servers have saved nothing for two seconds."""
    deadline, seen, since = time.monotonic() + seconds, None, time.monotonic()
    while time.monotonic() - since < 2:
        check(time.monotonic() < deadline, f'no snapshots that last, only {seen}')
        now = [time_of(os.path.join(folder, f'ps_{i}.snapshot')) for i in range(2)]
        if now != seen or not all(now):
            seen, since = now, time.monotonic()
        time.sleep(0.05)


@case('kill -9 of all servers, which are started again: they go on from their snapshots within 5 s, to the bits of one device')
def _():
    want = digest(expected(4, 3))
    with temporary_folder() as folder, temporary_folder() as signals:
        go = pathlib.Path(signals, 'go')
        cluster = Cluster(0, 2, ['asynchronous', 4, 3], SNAPSHOTS=folder, RETRY='20', HOLD=str(go))
        cluster.wait_until_under_way()
        wait_until_saved(folder)  # its last update, too: nothing will be lost
        cluster.restart(('ps', 0), ('ps', 1))
        began = time.monotonic()
        go.touch()
        outputs, statuses = cluster.finish()
        check_all_well(outputs, statuses)
        check(digest(outputs[('chief', 0)]) == want, outputs)
        for i in range(2):
            check(f'ps {i} continues from its snapshot' in outputs[('ps', i)], outputs)
        check(os.listdir(folder) == [], 'snapshots of a training that has ended')
        check_took(began, 5)


@case('kill -9 of a server again and again, which is started again: all workers go on')
def _():
    first, last = losses(expected(4, 8))
    with temporary_folder() as folder, temporary_folder() as signals:
        go = pathlib.Path(signals, 'go')
        cluster = Cluster(1, 2, ['asynchronous', 4, 50, 10], SNAPSHOTS=folder, RETRY='20', HOLD=str(go), HOLD_AFTER='200')
        cluster.wait_until_under_way()
        wait_until(lambda: all(os.path.exists(os.path.join(folder, f'ps_{i}.snapshot')) for i in range(2)))
        for n in range(3):
            cluster.restart(('ps', n % 2))
            cluster.wait_until_restored(n % 2)
            time.sleep(0.3)
        go.touch()
        outputs, statuses = cluster.finish()
        check_all_well(outputs, statuses)
        for name in (('chief', 0), ('worker', 0)):
            mine = losses(outputs[name])[1]
            check(mine < last + 0.3 * (first - last), f'{name}: {mine} instead of {last}, from {first}')


@case('kill -9 of a server without snapshots, which is started again: it goes on with the weights of the chief')
def _():
    first, last = losses(expected(4, 8))
    with temporary_folder() as signals:
        go = pathlib.Path(signals, 'go')
        cluster = Cluster(1, 2, ['asynchronous', 4, 20, 5], RETRY='20', HOLD=str(go), HOLD_AFTER='60')
        cluster.wait_until_under_way()
        cluster.restart(('ps', 1))
        go.touch()
        outputs, statuses = cluster.finish()
    check_all_well(outputs, statuses)
    check('ps 1 at ' in outputs[('chief', 0)] and ' was restarted without a snapshot' in outputs[('chief', 0)], outputs)
    mine = losses(outputs[('chief', 0)])[1]
    check(mine < last + 0.3 * (first - last), f'{mine} instead of {last}, from {first}')


@case('10,000 hostile connections to the servers, as fast as they come: the same bits, no more than 64 MB more memory')
def _():
    want = digest(expected(4, 60))
    with temporary_folder() as signals:
        go = pathlib.Path(signals, 'go')  # 500 steps at most before the flood is over
        cluster = Cluster(0, 2, ['asynchronous', 4, 60, 3], HOLD=str(go), HOLD_AFTER='500')
        cluster.wait_until_under_way()
        servers = [cluster.processes[('ps', i)] for i in range(2)]
        ports = [int(a.rpartition(':')[2]) for a in cluster.ps_addresses]
        check(flood(ports, to_parameter_server('test'), servers) <= 64, 'too much memory')
        go.touch()
        outputs, statuses = cluster.finish()
    check_all_well(outputs, statuses)
    check(digest(outputs[('chief', 0)]) == want, outputs)


with tempfile.TemporaryDirectory() as keys:
    for authority in ('ours', 'foreign'):
        certificates(f'{keys}/{authority}', authority)
    # A client with the right authority, but with a certificate of another one.
    os.makedirs(f'{keys}/spy')
    for name, origin in (('authority.pem', 'ours'), ('worker.pem', 'foreign'), ('worker.key', 'foreign')):
        os.symlink(f'{keys}/{origin}/{name}', f'{keys}/spy/{name}')

    @case('TLS: processes with certificates train, to the bits of one device; those without, or with foreign ones, come to nothing')
    def _():
        want = digest(expected(4))
        outputs, statuses = Cluster(1, 2, ['synchronous', 4], TLS=f'{keys}/ours').finish()
        check_all_well(outputs, statuses)
        for name, out in outputs.items():
            check(name[0] == 'ps' or digest(out) == want, f'{name}: {out}')
        strangers = {('worker', i): {'START': '3'} | more for i, more in enumerate(({}, {'TLS': f'{keys}/foreign'}, {'TLS': f'{keys}/spy'}))}
        cluster = Cluster(3, 1, ['asynchronous', 4, 100000], more_of={('ps', 0): {'TLS': f'{keys}/ours'}, ('chief', 0): {'TLS': f'{keys}/ours'}} | strangers)
        check(read_line(cluster.processes[('chief', 0)]) == 'under way\n', 'the chief does not train')
        outputs, statuses = cluster.finish(without=[('chief', 0), ('ps', 0)])
        check(cluster.processes[('chief', 0)].poll() is None, 'the chief has ended')
        for name, out in outputs.items():
            check(statuses[name] == 3 and f'communication_error: ps 0 at {cluster.ps_addresses[0]} does not answer within 3000 ms' in out, f'{name}: {out}')

    @case('TLS: a certificate that is not there, and one that is none')
    def _():
        os.makedirs(f'{keys}/torn')
        for name in ('authority.pem', 'worker.pem', 'worker.key'):
            with open(f'{keys}/torn/{name}', 'w') as file:
                file.write('-----BEGIN CERTIFICATE-----')
        for folder, words in (('/nowhere', 'error: cannot read /nowhere/authority.pem'), (f'{keys}/torn', f'error: {keys}/torn/authority.pem is not a PEM file, or is truncated')):
            outputs, statuses = Cluster(0, 1, ['asynchronous', 4], TLS=folder).finish(without=[('chief', 0)])
            check(statuses[('ps', 0)] == 2 and words in outputs[('ps', 0)], outputs)


@case('an address that others can reach: refused without a secret or certificates, unless that is switched off')
def _():
    ip = shutil.which('ip', path=os.environ['PATH'] + ':/usr/sbin:/sbin')
    shown = subprocess.run([ip, '-o', '-4', 'addr', 'show', 'scope', 'global'], capture_output=True, text=True).stdout if ip else ''
    own = next((line.split()[3].partition('/')[0] for line in shown.splitlines()), None)
    for host in filter(None, ('node1', '0.0.0.0', own)):
        outputs, statuses = Cluster(0, 1, ['asynchronous', 4], host=host).finish()
        for name, out in outputs.items():
            check(statuses[name] == 2 and f'error: the control plane at {host}:' in out and ' can be reached from other machines: ' in out, f'{name}: {out}')
    if own:
        check_all_well(*Cluster(0, 1, ['asynchronous', 4], host=own, UNPROTECTED='1').finish())
    else:
        print('# there is no address but loopback, or no command ip: the option is not tested')


sys.exit(finish_tests())
