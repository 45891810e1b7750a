"""Starts processes of a training, and checks their output. Shared by the tests of this folder."""
import functools, json, os, random, select, socket, subprocess, sys, time

PATIENCE = 180  # seconds until something counts as hanging
results = []
started = []  # processes, some of which may have ended


class TooSlow(AssertionError):
    """Raised if something took too long, perhaps only because the machine was busy."""


def free_ports(n):
    """Ports outside the range that the system assigns by itself; tests that run at the same time have ranges of their own."""
    tests = sorted(name for name in os.listdir(os.path.dirname(__file__)) if name.startswith('test_'))
    test, width = os.path.basename(sys.argv[0]), 12000 // (len(tests) + 1)
    first = 20000 + width * (tests.index(test) if test in tests else len(tests))
    ports = []
    while len(ports) < n:
        port = random.randrange(first, first + width)
        with socket.socket() as s:
            try:
                s.bind(('127.0.0.1', port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


def start(arguments, config=None, program='worker', within=(), **more):
    """Starts a process without TF_CONFIG and run id of this process; `within` is a command that starts commands. It ends with the case."""
    environment = {k: v for k, v in os.environ.items() if k not in ('TF_CONFIG', 'STRATA_RUN_ID')} | more
    if config:
        environment['TF_CONFIG'] = json.dumps(config)
    command = [*within, os.path.join(os.environ['STRATA_PROGRAMS'], 'distributed_' + program)] + [str(a) for a in arguments]
    started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    return started[-1]


def kill_started():
    """Kills all started processes, so that none is left after a failure."""
    for p in started:
        p.kill()
    for p in started:
        p.wait()
    started.clear()


def configurations(cluster):
    """The TF_CONFIG of each member, such as ('worker', 0), of {'worker': ['127.0.0.1:2222']}; a role without addresses is left out."""
    cluster = {role: addresses for role, addresses in cluster.items() if addresses}
    return {(role, i): {'cluster': cluster, 'task': {'type': role, 'index': i}} for role in cluster for i in range(len(cluster[role]))}


def start_workers(count, arguments, chief=False, arguments_of=None, more_of=None):
    addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
    configs = configurations({'chief': addresses[:chief], 'worker': addresses[chief:]}).values()
    return [start((arguments_of or {}).get(i, arguments), config, **(more_of or {}).get(i, {})) for i, config in enumerate(configs)]


def wait_until(condition, seconds=PATIENCE):
    deadline = time.monotonic() + seconds
    while not condition():
        check(time.monotonic() < deadline, f'still not after {seconds} s')
        time.sleep(0.05)


def read_line(process, seconds=PATIENCE):
    """The next line of a process; later output is left for communicate."""
    line, deadline = b'', time.monotonic() + seconds
    while not line.endswith(b'\n'):
        check(select.select([process.stdout], [], [], max(0, deadline - time.monotonic()))[0], f'no line within {seconds} s, only: {line}')
        byte = os.read(process.stdout.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode()


def under_way(processes):
    """Waits until each process has printed an epoch; returns the processes."""
    for p in processes:
        line = read_line(p)
        check(line.startswith('epoch'), line)
    return processes


def finish(processes, seconds=PATIENCE):
    outputs = []
    deadline = time.monotonic() + seconds
    for p in processes:
        try:
            out, _ = p.communicate(timeout=max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            for q in processes:
                q.kill()
            out = p.communicate()[0] + '\n(still running after %d s)' % seconds
        outputs.append(out)
    return outputs


def case(name):
    """Runs a test case. One that is too slow is tried three times."""
    def run(f):
        for attempt in range(3):
            try:
                f()
                problem = None
            except Exception as e:  # a failed check, or anything else
                problem = f'{type(e).__name__}: {e}'
                if isinstance(e, TooSlow) and attempt < 2:
                    print(f'# once more, for it {e}', flush=True)
                    continue
            finally:
                kill_started()
            break
        results.append(problem is None)
        print(('ok' if problem is None else 'not ok'), len(results), '-', name, flush=True)
        if problem:
            print('\n'.join('# ' + line for line in problem.splitlines()), flush=True)
    return run


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def check_took(began, seconds):
    """Checks that at most `seconds` have passed; returns how many have."""
    took = time.monotonic() - began
    if took >= seconds:
        raise TooSlow(f'took {took:.1f} s instead of at most {seconds} s')
    return took


def line_of(output, word):
    """The only line that begins with a word."""
    lines = [line for line in output.splitlines() if line.startswith(word)]
    check(len(lines) == 1, output)
    return lines[0]


def digest(output):
    return line_of(output, 'digest')


@functools.cache
def strategies():
    """The strategies of several processes that the worker was built with."""
    return finish([start(['strategies'])])[0].split()


def expected(network, leaves):
    return digest(finish([start([network, 'one_device', 1, leaves])])[0])


def finish_tests():
    """Prints the TAP plan; returns the exit status."""
    print(f'1..{len(results)}')
    return not all(results)
