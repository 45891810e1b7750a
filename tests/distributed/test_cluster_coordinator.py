# needs: grpc protozero
"""A chief that schedules tasks, and workers that execute them, die, hang and come back, as real processes."""
import functools, os, signal, socket, sys, tempfile
import workers
from workers import PATIENCE, case, check, finish, finish_tests, free_ports, line_of, read_line

signals = tempfile.TemporaryDirectory()


class Cluster:
    def __init__(self, count, scene, ps=0, run_of=None, hold=False, **more):
        ports = free_ports(1 + count + ps)
        members = {'chief': [f'127.0.0.1:{ports[0]}']}
        if count:
            members['worker'] = [f'127.0.0.1:{p}' for p in ports[1:1 + count]]
        if ps:
            members['ps'] = [f'127.0.0.1:{p}' for p in ports[1 + count:]]
        self.address = members['chief'][0]
        self.go = tempfile.mktemp(dir=signals.name)  # see hold
        tasks = [('chief', 0)] + [('worker', i) for i in range(count)] + [('ps', i) for i in range(ps)]
        self.starts = [functools.partial(workers.start, [scene], {'cluster': members, 'task': {'type': t, 'index': i}}, program='scheduled',
                                         **{'STRATA_RUN_ID': (run_of or {}).get((t, i), 'test')} | ({'HOLD': self.go} if hold else {}) | more) for t, i in tasks]
        self.processes = [s() for s in self.starts]

    def let_go(self):
        """Squares go on, if the cluster was started with hold."""
        open(self.go, 'w').close()

    def wait_until_under_way(self):
        line = read_line(self.processes[0])
        check(line == 'under way\n', line)

    def wait_until_begun(self, index):
        line = read_line(self.processes[index])
        check(line == 'begun\n', line)

    def restart(self, index):
        """kill -9, and again."""
        self.processes[index].kill()
        self.processes[index].communicate()
        self.processes[index] = self.starts[index]()

    def finish(self):
        return finish(self.processes)


def counts(output):
    line = line_of(output, 'all right, by ')
    return [int(word) for word in line.split()[3:]]


@case('tasks go to all workers, and their values come back')
def _():
    cluster = Cluster(3, 'squares', hold=True)
    for i in (1, 2, 3):
        cluster.wait_until_begun(i)
    cluster.let_go()
    outputs = cluster.finish()
    by = counts(outputs[0])
    check(sum(by) == 120 and all(n > 0 for n in by[1:4]), outputs)
    check(all(out == 'over\n' for out in outputs[1:]) and all(p.returncode == 0 for p in cluster.processes), outputs)


@case('kill -9 of a worker: others do its task; started again, it takes part')
def _():
    cluster = Cluster(2, 'squares', hold=True)
    cluster.wait_until_begun(2)
    for _ in range(2):
        cluster.wait_until_begun(1)
        cluster.restart(1)
    cluster.wait_until_begun(1)
    cluster.let_go()
    by = counts(cluster.finish()[0])
    check(sum(by) == 120 and by[1] > 0 and by[2] > 0, by)


@case('a worker that is stopped: others do its task, and it is welcome when it goes on')
def _():
    cluster = Cluster(2, 'squares', hold=True)
    cluster.wait_until_begun(1)
    cluster.processes[1].send_signal(signal.SIGSTOP)
    cluster.let_go()
    try:
        by = counts(cluster.processes[0].communicate(timeout=PATIENCE)[0])
        check(sum(by) == 120 and by[2] > 60, by)
    finally:
        cluster.processes[1].send_signal(signal.SIGCONT)


@case('a task that throws: join throws the same and names the worker; then it goes on')
def _():
    out = Cluster(1, 'failure').finish()[0]
    check('join: worker 0: fail_at: three is too many\nfetch: worker 0: fail_at: three is too many\nxx\n' in out, out)
    check(sum(counts(out)) == 10, out)


@case('a task that workers do not know')
def _():
    out = Cluster(1, 'unknown').finish()[0]
    check(out == 'error: worker 0: not_registered: this worker has no such task\n', out)


@case('a task that costs every worker its life is given up')
def _():
    cluster = Cluster(1, 'endless')
    for _ in range(3):
        cluster.wait_until_begun(1)
        cluster.restart(1)
    out = cluster.processes[0].communicate(timeout=PATIENCE)[0]
    check('communication_error: square has been given to 3 workers, and all of them are gone; the last was worker 0' in out, out)


@case('no worker is there')
def _():
    out = Cluster(0, 'squares').finish()[0]
    check('the chief waits for a worker to execute 120 tasks: 2 s of 3 s' in out, out)
    check('communication_error: no worker was connected for 3000 ms, but 120 tasks are left' in out, out)


@case('kill -9 of the chief: the workers end, and name it')
def _():
    cluster = Cluster(2, 'endless', START='4')
    cluster.wait_until_under_way()
    cluster.processes[1].kill()
    cluster.restart(2)
    cluster.processes[0].kill()
    out = cluster.processes[2].communicate(timeout=PATIENCE)[0]
    check(f'communication_error: run_tasks: chief 0 at {cluster.address} ' in out, out)


@case('a worker of another run is refused')
def _():
    cluster = Cluster(2, 'squares', run_of={('worker', 1): 'another'})
    outputs = cluster.finish()
    check(sum(counts(outputs[0])) == 120 and 'this coordinator belongs to another run' in outputs[2], outputs)


@case('strangers on the port change nothing')
def _():
    cluster = Cluster(2, 'squares', hold=True)
    cluster.wait_until_under_way()
    port = int(cluster.address.rpartition(':')[2])
    came = 0
    for n in range(300):
        try:
            with socket.create_connection(('127.0.0.1', port)) as s:
                s.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + bytes([n % 256]) * (n * 7))
                came += 1
        except OSError:  # refused
            pass
    cluster.let_go()
    check(came > 30 and sum(counts(cluster.finish()[0])) == 120, f'{came} came, or tasks are missing')


@case('parameters on servers, steps scheduled by the chief: it learns, though a worker dies')
def _():
    cluster = Cluster(2, 'train', ps=1)
    cluster.wait_until_under_way()
    cluster.processes[2].kill()
    outputs = cluster.finish()
    check(line_of(outputs[0], 'learned'), outputs)
    check(cluster.processes[0].returncode == 0 and cluster.processes[3].returncode == 0, outputs)


sys.exit(finish_tests())
