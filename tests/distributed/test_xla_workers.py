# needs: openssl protozero
"""Real processes, each with two devices of a mocked plugin: the plugins find each other through the control plane, each process
sends the rows of its own devices, and a lost process ends the others."""
import sys, time
from workers import case, check, check_took, digest, finish, finish_tests, free_ports, line_of, read_line, start


def start_xla_workers(count, epochs, pause, **more):
    addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
    return [start([epochs, pause], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}, 'xla_worker', **more)
            for i in range(count)]


def firsts(out):
    return [float(line.split()[-1]) for line in out.splitlines() if line.startswith('step ')]


@case('1, 2 and 3 processes: two devices of each, and the rows of each in their order')
def _():
    digests = set()
    for count in (1, 2, 3):
        for rank, out in enumerate(finish(start_xla_workers(count, 2, 0))):
            replicas = 4 if count == 1 else 2 * count
            check(line_of(out, 'replicas') == f'replicas {replicas} own {4 if count == 1 else 2}', out)
            # Batches of 8, 8, 8 and 6 samples, in equal parts; 0 is padding.
            first = [batch + rank * 2 * -(-size // replicas) for batch, size in ((0, 8), (8, 8), (16, 8), (24, 6))]
            first = [f if f < batch + size else 0 for f, (batch, size) in zip(first, ((0, 8), (8, 8), (16, 8), (24, 6)))]
            check(firsts(out) == first * 2, out)
            check(line_of(out, 'predictions') == 'predictions 60', out)
            digests.add(digest(out))
    check(len(digests) == 1, digests)


@case('steps that the host does not wait for: the same weights')
def _():
    digests = {digest(out) for execution in (1, 3) for out in finish(start_xla_workers(2, 2, 0, EXECUTION=str(execution)))}
    check(len(digests) == 1, digests)


@case('a process that is killed ends the others, which name it, also where they wait for devices only now and then')
def _():
    for execution in (1, 4):
        first, second = workers = start_xla_workers(2, 1000, 20, EXECUTION=str(execution))
        for w in workers:
            while not read_line(w).startswith('step 12'):
                pass
        began = time.monotonic()
        second.kill()
        out = finish([first])[0]
        check('communication_error: ' in out and 'worker 1 (rank 1' in out, out)
        check_took(began, 10)


@case('a process that ends with an error does not wait for steps that the others never begin')
def _():
    for error in ('thrown', 'announced', 'sending'):
        addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
        config = lambda i: {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}
        first, second = [start([1, 0], config(i), 'xla_worker', STEPS=str(3 - i), ERROR=error) for i in range(2)]
        for w in (second, first):
            while not read_line(w).startswith('begun '):
                pass
        began = time.monotonic()
        out = finish([first], 60)[0]
        check(error == 'announced' or 'error: the data have an error' in out, out)
        check_took(began, 10)
        check(second.poll() is None, 'the other process has ended, too')
        second.kill()


@case('processes that compute other numbers of steps, or other ones, are told so, also where the chief has left')
def _():
    begun, waits = ' has begun 4 calls', ' calls on the devices of all processes and waits for '
    trains = f'{waits}a training step of 8 samples, but '
    # The mocked devices synchronize through the store of the coordinator: without it, devices of the other process cannot detect the end.
    # If both processes wait for a call of the same number, the heartbeat of either may report it first.
    for short, then, *words in ((0, 'leaves', trains, 'the process of the coordinator at 127.0.0.1:', ' has left the training: '),
                                (1, 'leaves', begun, trains, ' has left the training: '),
                                (1, 'agrees', begun, trains, ' has begun only 2 and waits for an agreement: '),
                                (1, 'evaluates', waits, ' for a training step of 8 samples', ' for an evaluation of 8 samples')):
        addresses = [f'127.0.0.1:{p}' for p in free_ports(2)]
        began = time.monotonic()
        outputs = finish([start([1, 0], {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}, 'xla_worker',
                                STEPS='2' if i == short else '6', THEN=then if i == short else 'leaves') for i in range(2)], 60)
        check_took(began, 30)
        for i, out in enumerate(outputs):
            if i == short and then == 'leaves':
                check('error' not in out, out)
            else:
                check(all(w in out for w in ('communication_error: ', *words, 'all processes have to compute the same steps')), out)


@case('a plugin that knows the devices of one process only is refused')
def _():
    for out in finish(start_xla_workers(2, 1, 0, ALONE='1')):
        check('has only the 4 devices of this process, although 2 processes train together' in out or 'communication_error: ' in out, out)


sys.exit(finish_tests())
