# needs: openssl protozero
"""Processes that die, stop, are slow or are strangers: which process detects it, when, and its error message."""
import os, re, signal, sys, tempfile, time
from strangers import certificates, flood, start_crowd, to_coordinator
from workers import (case, check, check_took, digest, expected, finish, finish_tests, free_ports, start, start_workers, under_way,
                     wait_until, strategies)

ENDLESS = 1000000  # epochs


def expect_error(processes, seconds, *words):
    """Checks that all processes end in time, with a communication_error that contains these words."""
    began = time.monotonic()
    outputs = finish(processes)
    for out in outputs:
        check('communication_error: ' in out, out)
        for word in words:
            check(word in out, f'no "{word}" in: {out}')
    check_took(began, seconds)
    return outputs


def name_of(index, process):
    return f'worker {index} (rank {index}, 127.0.0.1, pid {process.pid})'


for strategy in strategies():
    @case(f'{strategy}: kill -9 of a worker: all others name it, within 2 s')
    def _():
        processes = under_way(start_workers(4, ['mlp', strategy, 1, 4, ENDLESS]))
        processes[1].kill()
        expect_error([processes[i] for i in (0, 2, 3)], 2, f'process 1 is {name_of(1, processes[1])}, says ')

    @case(f'{strategy}: kill -9 of the chief: all others end within 2 s')
    def _():
        processes = under_way(start_workers(3, ['mlp', strategy, 1, 4, ENDLESS]))
        processes[0].kill()
        expect_error(processes[1:], 2)

    @case(f'{strategy}: a worker that stops: named by all others within 8 s, and refused when it comes back')
    def _():
        processes = under_way(start_workers(3, ['mlp', strategy, 1, 4, ENDLESS]))
        processes[2].send_signal(signal.SIGSTOP)
        try:
            expect_error(processes[:2], 8, name_of(2, processes[2]) + ' is considered dead: no heartbeat for ', ' has waited ', ' for worker 2 (')
        finally:
            processes[2].send_signal(signal.SIGCONT)
        expect_error(processes[2:], 5)  # at its next heartbeat

    @case(f'{strategy}: a chief that stops: all others end within 8 s, and it ends when it comes back')
    def _():
        processes = under_way(start_workers(3, ['mlp', strategy, 1, 4, ENDLESS]))
        processes[0].send_signal(signal.SIGSTOP)
        try:
            expect_error(processes[1:], 8, 'the coordinator at 127.0.0.1:', ' is lost: no answer for ')
        finally:
            processes[0].send_signal(signal.SIGCONT)
        expect_error(processes[:1], 8)


@case('a worker that hangs for longer than the time-out, though it is alive: who waits for whom')
def _():
    processes = under_way(start_workers(2, ['mlp', 'multi_worker', 1, 4, ENDLESS], more_of={1: {'SLOW': '30000'}}))
    out = expect_error(processes[:1], 14, 'did not answer within 10000 ms; process 1 is ' + name_of(1, processes[1]),
                       name_of(1, processes[1]) + ' was not waiting for a process, as of ')[0]
    check(re.search(r'worker 0 \(.*\) has waited \d+\.\d s for worker 1 \(', out), out)


for culprit in (0, 1):
    for how in ({}, {'EXIT': '1'}):
        @case(f'an exception in worker {culprit}' + (' that ends at once' if how else '') + ': all tell it')
        def _():
            processes = start_workers(3, ['mlp', 'multi_worker', 1, 4, ENDLESS], more_of={culprit: {'THROW': '3', **how}})
            outputs = finish(processes)
            check('error: the callback has had enough' in outputs[culprit], outputs[culprit])
            for i in {0, 1, 2} - {culprit}:
                check(f'communication_error: {name_of(culprit, processes[culprit])} ends because of an error: the callback has had enough\n' in outputs[i], outputs[i])


@case('a worker that never comes: all name it, and no other')
def _():
    addresses = [f'127.0.0.1:{p}' for p in free_ports(5)]
    processes = []
    for i in (1, 0, 4, 3):
        processes.append(start(['mlp', 'multi_worker', 1, 4], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}))
        time.sleep(0.3)
    for out in finish(processes):
        check(f'communication_error: worker 2 did not register with the coordinator at {addresses[0]} within 10000 ms' in out, out)
        check(not re.search(r'worker [134]\b.* did not register', out), out)


def listening_ports(processes):
    sockets = set()
    for p in processes:
        for fd in os.listdir(f'/proc/{p.pid}/fd'):
            try:
                sockets.add(os.readlink(f'/proc/{p.pid}/fd/{fd}'))
            except OSError:
                pass
    ports = []
    for table in ('tcp', 'tcp6'):
        with open(f'/proc/net/{table}') as lines:
            for words in (line.split() for line in list(lines)[1:]):
                if words[3] == '0A' and f'socket:[{words[9]}]' in sockets:
                    ports.append(int(words[1].rpartition(':')[2], 16))
    return ports


@case('10,000 hostile connections to every port of a training: the same bits, no more than 64 MB more memory')
def _():
    rounds = 300
    want = digest(finish([start(['mlp', 'one_device', 1, 4, rounds])])[0])
    with tempfile.TemporaryDirectory() as signals:
        go = os.path.join(signals, 'go')  # the last epoch waits until the flood is over
        processes = start_workers(2, ['mlp', strategies()[-1], 1, 4, rounds], more_of={i: {'HOLD': go} for i in (0, 1)})
        under_way(processes)
        ports = listening_ports(processes)
        check(ports, 'no process listens')
        check(flood(ports, to_coordinator, processes) <= 64, 'too much memory')
        open(go, 'w').close()
        for out in finish(processes):
            check(digest(out) == want, out[-500:])


@case('strangers without a secret: calls that never end, silence, and readers that do not read, and the training goes on')
def _():
    want, rounds = expected('mlp', 4), 2
    for kind, count in (('calls that never end', 70), ('slow readers', 500), ('silent', 3000)):
        with tempfile.TemporaryDirectory() as folder:
            go = f'{folder}/go'
            processes = start_workers(2, ['mlp', 'multi_worker', 1, 4, rounds], more_of={i: {'HOLD': go} for i in (0, 1)})
            under_way(processes)
            crowd = start_crowd('127.0.0.1', listening_ports(processes)[0], kind, count)
            try:
                crowd.stdout.readline()
                time.sleep(7)  # longer than three heartbeats
                check(all(p.poll() is None for p in processes), [p.communicate()[0] for p in processes if p.poll() is not None])
                open(go, 'w').close()
                for out in finish(processes):
                    check(digest(out) == want, f'{kind}: {out}')
            finally:
                crowd.kill()
                crowd.wait()


@case('strangers at another address, without a secret: a training starts and ends while they hold 3,000 connections')
def _():
    want = expected('mlp', 4)
    for kind in ('silent', 'calls that never end'):
        addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
        arguments, cluster = ['mlp', 'multi_worker', 1, 4], {'worker': addresses}
        chief = start(arguments, {'cluster': cluster, 'task': {'type': 'worker', 'index': 0}})
        wait_until(lambda: listening_ports([chief]))
        crowd = start_crowd('127.0.0.1', listening_ports([chief])[0], kind, 3000, source='127.0.0.2')
        try:
            crowd.stdout.readline()
            for out in finish([chief, start(arguments, {'cluster': cluster, 'task': {'type': 'worker', 'index': 1}})]):
                check(digest(out) == want, f'{kind}: {out}')
        finally:
            crowd.kill()
            crowd.wait()


@case('over TCP, only the coordinator listens once the workers are connected')
def _():
    addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
    processes = under_way([start(['mlp', 'multi_worker_tcp', 1, 4, ENDLESS], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}})
                           for i in (0, 1)])
    check([f'127.0.0.1:{p}' for p in listening_ports(processes)] == addresses[:1], (listening_ports(processes), addresses))


with tempfile.TemporaryDirectory() as keys:
    certificates(f'{keys}/ours', 'ours')
    certificates(f'{keys}/foreign', 'foreign')
    # A client with the right authority, but with a certificate of another one.
    os.makedirs(f'{keys}/spy')
    for name, origin in (('authority.pem', 'ours'), ('worker.pem', 'foreign'), ('worker.key', 'foreign')):
        os.symlink(f'{keys}/{origin}/{name}', f'{keys}/spy/{name}')

    def run(addresses, index, **more):
        return start(['mlp', 'multi_worker', 1, 4], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': index}}, **more)

    @case('TLS: workers with certificates train, those without or with foreign ones are refused')
    def _():
        addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
        want = expected('mlp', 4)
        for out in finish([run(addresses, i, TLS=f'{keys}/ours') for i in (0, 1)]):
            check(digest(out) == want, out)
        chief = run(addresses, 0, TLS=f'{keys}/ours')
        strangers = [run(addresses, 1), run(addresses, 1, TLS=f'{keys}/foreign'), run(addresses, 1, TLS=f'{keys}/spy')]
        outputs = finish([chief] + strangers)
        check(f'worker 1 did not register with the coordinator at {addresses[0]} within 10000 ms' in outputs[0], outputs[0])
        for out in outputs[1:]:
            check(f'the coordinator at {addresses[0]} did not admit worker 1 within 10000 ms: ' in out, out)
            print('# ' + out.strip().splitlines()[-1])

    @case('TLS: a certificate that is not there')
    def _():
        out = finish([run([f'127.0.0.1:{p}' for p in free_ports(2)], 0, TLS='/nowhere')])[0]
        check('cannot read /nowhere/authority.pem' in out, out)


@case('an address that others can reach, without a secret or certificates')
def _():
    for host in ('192.0.2.1', 'node1', '127.0.0.1.example.org', '0.0.0.0', '[2001:db8::1]'):
        cluster = {'worker': [f'{host}:2222', f'{host}:2223']}
        for index in (0, 1):
            out = finish([start(['mlp', 'multi_worker', 1, 4], {'cluster': cluster, 'task': {'type': 'worker', 'index': index}})])[0]
            check(out.startswith(f'error: the control plane at {host}:2222 can be reached from other machines: give all processes the same secret in STRATA_SECRET '), out)


sys.exit(finish_tests())
