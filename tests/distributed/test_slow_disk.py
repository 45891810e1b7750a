# needs: openssl protozero
"""A chief whose disk is slow or full: the others wait for as long as a snapshot takes, or report why the training ends."""
import os, sys, tempfile
from system_faults import SystemFaults
from workers import case, check, finish, finish_tests, free_ports, start as start_process, wait_until

LEAVES, PAUSE = 4, 5
scratch = tempfile.TemporaryDirectory()


def start(strategy, count, name, within=(), faults=None):
    """Starts the processes of one training; only the first of them has the folder and the system faults."""
    folder = os.path.join(scratch.name, name)
    addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
    return [start_process([folder if i == 0 else folder + '-not-here', strategy, 1, LEAVES, PAUSE],
                          {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}, 'resume',
                          within if i == 0 else (), TIMEOUT='1500', **(faults.environment if faults and i == 0 else {})) for i in range(count)]


def digests(outputs):
    lines = [line for out in outputs for line in out.splitlines() if line.startswith('digest')]
    check(len(lines) == len(outputs), outputs)
    return set(lines)


def slow_once(seconds):
    faults = SystemFaults()
    faults.slow_disk(seconds, 1)
    return faults


expected = digests(finish(start('one_device', 1, 'alone')))

for strategy in ('multi_worker', 'multi_worker_tcp', 'multi_worker_elastic'):
    @case(f'{strategy}: a snapshot that takes three times as long as a wait may: the same bits')
    def _():
        faults = slow_once(5)
        outputs = finish(start(strategy, 3, strategy, faults=faults))
        check(faults.slowed() == 1, outputs[0])
        check(digests(outputs) == expected, outputs)


@case('elastic: a worker dies while the chief saves for three times as long as a wait may: the others go on when it has saved')
def _():
    faults = slow_once(5)
    processes = start('multi_worker_elastic', 3, 'dies', faults=faults)
    wait_until(faults.slowed)
    processes[2].kill()
    outputs = finish(processes[:2])
    check('lost worker 2' in outputs[0], outputs[0])
    check(digests(outputs) == expected, outputs)


@case('a chief that dies while it saves is noticed')
def _():
    faults = slow_once(100)
    processes = start('multi_worker', 3, 'chief-dies', faults=faults)
    wait_until(faults.slowed)
    processes[0].kill()
    for out in finish(processes[1:]):
        check('communication_error: ' in out, out)


@case('a full disk: all processes tell it')
def _():
    full = ('bash', '-c', 'ulimit -f 1 && exec "$@"', 'limited')
    processes = start('multi_worker', 3, 'full', full)
    outputs = finish(processes)
    check('error: cannot write ' in outputs[0] and 'File too large' in outputs[0], outputs[0])
    for out in outputs[1:]:
        check(f'communication_error: worker 0 (rank 0, 127.0.0.1, pid {processes[0].pid}) ends because of an error: cannot write ' in out
              and 'File too large' in out, out)


sys.exit(finish_tests())
