# needs: openssl protozero
"""Pipelines, divided layers and meshes over real processes: the bits of one device, snapshots that any strategy continues, and the errors
when a process is lost."""
import itertools, os, sys, tempfile
from elastic import MeshTraining
from workers import case, check, check_took, digest, finish, finish_tests, free_ports, read_line, start
import time

scratch = tempfile.TemporaryDirectory()
folders = (os.path.join(scratch.name, str(i)) for i in itertools.count())
expected = digest(finish([start(['one_device'], program='stages')])[0])


def train(strategy, folder='', count=None, **more):
    """Runs the processes of one training; only the first of them has the folder."""
    count = count or {'mesh_workers': 4, 'pipelines_workers': 4, 'cube_workers': 8}.get(strategy, 2)
    if 'workers' not in strategy:
        return [start([strategy, folder], program='stages', **more)]
    addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
    return [start([strategy, folder if i == 0 or not folder else folder + '-not-here'],
                  {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}, 'stages', **more)
            for i in range(count)]


@case('two threads, two processes through shared memory, two over TCP, two pipelines of two: the bits of one device')
def _():
    for strategy in ('threads', 'workers', 'workers_tcp', 'pipelines_workers'):
        for out in finish(train(strategy)):
            check(digest(out) == expected, f'{strategy}:\n{out}')


@case('a training that ended within an epoch is continued by another strategy, to the same bits')
def _():
    for first, second in (('workers', 'one_device'), ('one_device', 'workers'), ('workers', 'threads'), ('threads', 'workers'),
                          ('pipelines_workers', 'workers'), ('one_device', 'pipelines_workers')):
        folder = next(folders)
        for out in finish(train(first, folder, CRASH='7')):
            check('had enough' in out and 'digest' not in out, f'{first}:\n{out}')
        for out in finish(train(second, folder)):
            check(digest(out) == expected, f'{first}, then {second}:\n{out}')


@case('layers divided by columns, in two processes and in two groups of two: the bits of one device, also after an interruption')
def _():
    for strategy in ('tensor_workers', 'tensor_workers_tcp', 'mesh_workers'):
        for out in finish(train(strategy)):
            check(digest(out) == expected, f'{strategy}:\n{out}')
    for first, second in (('tensor_workers', 'one_device'), ('one_device', 'mesh_workers'), ('mesh_workers', 'tensor_workers')):
        folder = next(folders)
        for out in finish(train(first, folder, CRASH='7')):
            check('had enough' in out and 'digest' not in out, f'{first}:\n{out}')
        for out in finish(train(second, folder)):
            check(digest(out) == expected, f'{first}, then {second}:\n{out}')


@case('two groups of two ranks with two stages, in eight processes: the bits of one device, also after an interruption')
def _():
    for out in finish(train('cube_workers')):
        check(digest(out) == expected, out)
    for first, second in (('cube_workers', 'tensor_workers'), ('workers', 'cube_workers')):
        folder = next(folders)
        for out in finish(train(first, folder, CRASH='7')):
            check('had enough' in out and 'digest' not in out, f'{first}:\n{out}')
        for out in finish(train(second, folder)):
            check(digest(out) == expected, f'{first}, then {second}:\n{out}')


@case('as many processes as places, or one error')
def _():
    for out in finish(train('cube_workers', count=3)):
        check('layers are divided among 2 processes at each of 2 places in each of 2 groups, which are 8, but there are 3' in out, out)
    for out in finish(train('workers', count=3)):
        check('the network is cut for 2 processes, but there are 3' in out, out)
    for out in finish(train('pipelines_workers', count=3)):
        check('the network is cut for 2 processes in each of 2 groups, which are 4, but there are 3' in out, out)
    for out in finish(train('mesh_workers', count=3)):
        check('layers are divided among 2 processes in each of 2 groups, which are 4, but there are 3' in out, out)


@case('a process that is killed is named by the other one')
def _():
    processes = train('workers', PAUSE='50')
    while not read_line(processes[0]).startswith('step '):
        pass
    processes[1].kill()
    began = time.monotonic()
    out = finish(processes[:1])[0]
    check('communication_error' in out and 'worker 1' in out, out)
    check_took(began, 15)


@case('a process of a mesh that is killed is named by all others; another strategy continues from the snapshot, to the same bits')
def _():
    for mesh, then in (('pipelines_workers', 'workers'), ('mesh_workers', 'tensor_workers'), ('cube_workers', 'tensor_workers')):
        folder = next(folders)
        processes = train(mesh, folder, PAUSE='50')
        while (line := read_line(processes[0])) and not line.startswith('step 6 '):
            pass
        processes[3].kill()
        began = time.monotonic()
        for out in finish(processes[:3]):
            check('communication_error' in out and 'worker 3' in out, f'{mesh}:\n{out}')
        check_took(began, 15)
        for out in finish(train(then, folder)):
            check(digest(out) == expected, f'{mesh}, then {then}:\n{out}')


@case('an elastic mesh: a process of the second group dies, and the other one is a spare until that is back: all have the same bits')
def _():
    training = MeshTraining('pipelines_workers', epochs=12).under_way()
    killed = training.kill(3)
    training.chief.await_line(f'lost {training.name(3)}; 3 workers go on, 1 of them as a spare')
    training.workers[2].await_line('step', after=killed + 0.3)
    training.workers[3] = training.start(3)
    training.chief.await_line(f'admitted {training.name(3)}; 4 workers go on')
    training.workers[3].await_line('step ')
    training.check_bits()


@case('a late worker that divides the network in another way is refused, and the others go on')
def _():
    training = MeshTraining('pipelines_workers', epochs=8).under_way()
    training.kill(3)
    training.chief.await_line(f'lost {training.name(3)}; 3 workers go on, 1 of them as a spare')
    training.arguments = ['mesh_workers']
    out = training.start(3).finish()
    check('does not train what the others do' in out and 'places with the stages' in out and 'ranks that divide' in out, out)
    training.check_bits(0, 1, 2)


@case('an elastic mesh of which no process is left that has one of the parts: all that are left end and say so')
def _():
    training = MeshTraining('mesh_workers').under_way()
    training.kill(1, 3)
    for i in (0, 2):
        last = training.workers[i].finish().splitlines()[-1]
        words = ': the training does not go on without a process that has part 2 of 2 of the network ('
        check(last.startswith('communication_error: lost ') and words in last and training.name(1) in last and training.name(3) in last, last)


@case('elastic and one group: one error')
def _():
    for out in finish(train('workers', ELASTIC='2')):
        check('error: processes that divide the layers of a network cannot be elastic' in out, out)


sys.exit(finish_tests())
