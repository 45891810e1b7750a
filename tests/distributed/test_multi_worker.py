# needs: openssl protozero
"""Real processes, configured by TF_CONFIG: they train to the bits of one device, and report what went wrong."""
import socket, sys, threading, time
from workers import (PATIENCE, case, check, check_took, digest, expected, finish, finish_tests, free_ports, start, start_workers,
                     strategies)


for network in ('mlp', 'cnn', 'normalized'):
    @case(f'{network}: 1, 2, 4 threads; 1, 2, 3, 4 processes; 2 processes of 2 threads: the same bits')
    def _():
        want = expected(network, 4)
        for threads in (2, 4):
            check(digest(finish([start([network, 'mirrored', threads, 4])])[0]) == want, f'mirrored, {threads} threads')
        for processes, threads in ((1, 1), (2, 1), (3, 1), (4, 1), (2, 2)):
            for out in finish(start_workers(processes, [network, 'multi_worker', threads, 4])):
                check(digest(out) == want, f'{processes} processes of {threads} threads:\n{out}')


@case('20 processes, more than are added up in one pass: 32 leaves, unless the program says otherwise')
def _():
    want = expected('mlp', 32)
    for out in finish(start_workers(20, ['mlp', 'multi_worker', 1, 0])):
        check(digest(out) == want, out)


@case('over TCP, as between machines: the same bits')
def _():
    want = expected('normalized', 8)
    for strategy in strategies()[1:]:
        for processes in (2, 3):
            for out in finish(start_workers(processes, ['normalized', strategy, 1, 8])):
                check(digest(out) == want, out)


@case('zero<3>, parameters, gradients and slots in slices: the same bits')
def _():
    want = expected('mlp', 4)
    for processes, strategy in ((1, 'multi_worker_zero'), (2, 'multi_worker_zero'), (3, 'multi_worker_zero_tcp'), (4, 'multi_worker_zero')):
        for out in finish(start_workers(processes, ['mlp', strategy, 1, 4])):
            check(digest(out) == want, f'{processes} processes, {strategy}:\n{out}')


@case('a chief and workers')
def _():
    want = expected('mlp', 2)
    for out in finish(start_workers(2, ['mlp', 'multi_worker', 1, 2], chief=True)):
        check(digest(out) == want, out)


@case('a worker that trains something else is named, on both sides, before the first step')
def _():
    began = time.monotonic()
    for out in finish(start_workers(2, ['mlp', 'multi_worker', 1, 4], arguments_of={1: ['mlp', 'multi_worker', 1, 8]})):
        check('does not train what' in out and '4 leaves' in out and '8 leaves' in out and 'epoch' not in out, out)
    check_took(began, 5)


@case('a worker whose optimizer has other settings is named, with the setting')
def _():
    for out in finish(start_workers(2, ['mlp', 'multi_worker', 1, 4], more_of={1: {'BETA_1': '0.8'}})):
        check('does not train what' in out and "'beta_1 0.9'" in out and "'beta_1 0.8'" in out, out)


@case('workers that disagree about the cluster are named, on both sides, at once')
def _():
    a, b, c = (f'127.0.0.1:{p}' for p in free_ports(3))
    for first, second, index in (([a, b], [a, c], 1), ([a, b], [a, b, c], 2)):
        began = time.monotonic()
        outputs = finish([start(['mlp', 'multi_worker', 1, 4], {'cluster': {'worker': w}, 'task': {'type': 'worker', 'index': i}})
                          for w, i in ((first, 0), (second, index))])
        for out in outputs:
            check('communication_error:' in out and 'does not train what' in out, out)
            for cluster in (first, second):
                check("'cluster worker " + ' '.join(cluster) + "'" in out, out)
        check_took(began, 5)


@case('two processes with the same task are named, on both sides')
def _():
    cluster = {'worker': [f'127.0.0.1:{p}' for p in free_ports(3)]}
    outputs = finish([start(['mlp', 'multi_worker', 1, 4], {'cluster': cluster, 'task': {'type': 'worker', 'index': i}}) for i in (0, 1, 1)])
    for out in outputs:
        check('two processes claim to be rank 1: worker 1 (rank 1, 127.0.0.1, pid ' in out, out)


@case('workers of another run, by name, are refused and change nothing')
def _():
    addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
    def run(name, i):
        config = {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}
        return start(['mlp', 'multi_worker', 1, 4], config, STRATA_RUN_ID=name)
    chief, stranger = run('mine', 0), run('other', 1)
    out = finish([stranger])[0]
    check("this process belongs to run 'other', the coordinator to another one" in out, out)
    worker = run('mine', 1)
    want = expected('mlp', 4)
    for out in finish([chief, worker]):
        check(digest(out) == want, out)


@case('a worker that never comes')
def _():
    addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
    out = finish([start(['mlp', 'multi_worker', 1, 4], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': 0}})])[0]
    check(out.startswith(f'worker 0 waits for worker 1 to register with the coordinator at {addresses[0]}: 2 s of 10 s\n'), out)
    check(out.endswith(f'\ncommunication_error: worker 1 did not register with the coordinator at {addresses[0]} within 10000 ms\n'), out)


@case('a coordinator that never comes')
def _():
    addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
    out = finish([start(['mlp', 'multi_worker', 1, 4], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': 1}})])[0]
    check(f'the coordinator at {addresses[0]} did not admit worker 1 within 10000 ms: ' in out and 'onnect' in out, out)


@case('a port in use')
def _():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        s.listen()
        address = '127.0.0.1:%d' % s.getsockname()[1]
        began = time.monotonic()
        out = finish([start(['mlp', 'multi_worker', 1, 4],
                            {'cluster': {'worker': [address, '127.0.0.1:2223']}, 'task': {'type': 'worker', 'index': 0}})])[0]
        check(f'the coordinator cannot listen on {address}: is the port in use?' in out, out)
        check_took(began, 2)


@case('a slow worker is named by the chief, after half a minute, and lives')
def _():
    # A pause is much longer than an epoch, also on a busy machine: the slow worker waits for the others during their epochs.
    processes = start_workers(3, ['mlp', 'multi_worker', 1, 4, 1000000], more_of={1: {'SLOW': '3000'}})
    killer = threading.Timer(PATIENCE, processes[0].kill)
    killer.start()
    said = next((line for line in processes[0].stdout if 'is slow' in line), '')
    killer.cancel()
    check(said.startswith(f'worker 1 (rank 1, 127.0.0.1, pid {processes[1].pid}) is slow: in the last '), said)
    check(all(p.poll() is None for p in processes), 'a process has ended')


sys.exit(finish_tests())
