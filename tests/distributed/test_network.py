# needs: openssl protozero
# flags: alone
"""Workers on hosts of their own, as far as one machine can simulate them, under a slow, lossy, cut or silent network.

If the namespaces of network.py are not permitted, the test is skipped."""
import json, os, re, subprocess, sys, tempfile, time
from network import become_router, host, nothing_from, nothing_to, proxy, rule
from workers import case, check, check_took, digest, expected, finish, finish_tests, line_of, start, under_way

ENDLESS = 1000000  # epochs
CONTROL = 2222     # the coordinator's port

if why := become_router():
    print(f'1..0 # SKIP {why}')
    sys.exit()


def bytes_over(link):
    """The bytes sent over a link so far, in both directions."""
    shown = subprocess.run(['ip', '-json', '-statistics', 'link', 'show', link], capture_output=True, check=True)
    counts = json.loads(shown.stdout)[0]['stats64']
    return counts['rx']['bytes'] + counts['tx']['bytes']


SECRET = os.urandom(16).hex()


def start_on(places, arguments, **more):
    """A worker for each of the hosts."""
    addresses = [f'{h.address}:{CONTROL + i}' for i, h in enumerate(places)]
    configs = [{'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}} for i in range(len(places))]
    return [start(arguments, config, within=h.within(), **({'STRATA_SECRET': SECRET} | more)) for config, h in zip(configs, places)]


def expect_error(process, began, seconds, *words):
    out = finish([process])[0]
    check('communication_error: ' in out, out)
    for word in words:
        check(re.search(word, out), f'no "{word}" in: {out}')
    took = check_took(began, seconds)
    print(f'# {took:.1f} s: ' + out.strip().splitlines()[-1][:300])


a, b, c = hosts = [host(i) for i in range(3)]
GRADIENTS = f'! --destination-port {CONTROL}'
COORDINATOR = f'--destination-port {CONTROL}'
STEPS, PARAMETERS = 2 * 5, 4 * (784 * 64 + 64 + 64 * 64 + 64 + 64 * 10 + 10)  # of the mlp, in bytes
WANT = expected('mlp', 4)
A_WORKER = r'worker ([01]) \(rank \1, 10\.77\.\1\.2, pid \d+\)'


@case('two processes on each of two hosts: shared memory inside, TCP between them, and the same bits')
def _():
    before = bytes_over(a.link)
    for out in finish(start_on([a, a, b, b], ['mlp', 'multi_worker', 1, 4])):
        check(digest(out) == WANT, out)
    between = bytes_over(a.link) - before
    print(f'# {between / STEPS / PARAMETERS:.2f} times the gradients in a step')
    check(between > STEPS * PARAMETERS, f'only {between} bytes between the hosts')


@case('shared memory reaches within a machine only: another boot id, or other process numbers, and messages go over TCP')
def _():
    addresses = [f'127.0.0.1:{CONTROL + i}' for i in range(2)]
    other = tempfile.NamedTemporaryFile('w')
    other.write('3a1f1c1e-0000-4000-8000-000000000000\n')
    other.flush()
    pretend = f'mount --bind {other.name} /proc/sys/kernel/random/boot_id && exec "$@"'
    elsewhere = ['unshare', '--mount', 'sh', '-c', pretend, 'sh']
    sent = {}
    of_another_host = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc']
    for name, second in (('the same machine', []), ('another boot', elsewhere), ('other process numbers', of_another_host)):
        before = bytes_over('lo')
        configs = [{'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}} for i in range(2)]
        for out in finish([start(['mlp', 'multi_worker', 1, 4], config, within=w) for config, w in zip(configs, ([], second))]):
            check(digest(out) == WANT, out)
        sent[name] = bytes_over('lo') - before
    print('#', sent)
    check(sent.pop('the same machine') < PARAMETERS, 'shared memory is not used')
    check(min(sent.values()) > STEPS * PARAMETERS, sent)


@case('without a secret, where the network is said to be trusted: the same bits, and one line that says who may come in')
def _():
    chief, other = finish(start_on([a, b], ['mlp', 'multi_worker', 1, 4], STRATA_SECRET='', UNPROTECTED='1'))
    check(digest(chief) == digest(other) == WANT, chief + other)
    line_of(chief, f'the coordinator at {a.address}:{CONTROL} admits any process that reaches it')


@case('another secret, or none: told to the worker, and the others wait for it only as long as for one that never comes')
def _():
    for secret, word in (({'STRATA_SECRET': 32 * 'a'}, 'another secret, or none'), ({'STRATA_SECRET': '', 'UNPROTECTED': '1'}, 'did not admit worker 1')):
        addresses = [f'{h.address}:{CONTROL + i}' for i, h in enumerate((a, b))]
        configs = [{'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}} for i in range(2)]
        own = [{'STRATA_SECRET': SECRET}, secret]
        chief, other = finish([start(['mlp', 'multi_worker', 1, 4], c, within=h.within(), **o) for c, h, o in zip(configs, (a, b), own)])
        check('worker 1 did not register with the coordinator' in chief, chief)
        check(word in other, other)


@case('a delay of 50 ms: the same bits')
def _():
    with proxy('', delay=0.05) as slow:
        began = time.monotonic()
        for out in finish(start_on([a, b], ['mlp', 'multi_worker', 1, 4])):
            check(digest(out) == WANT, out)
        print(f'# {time.monotonic() - began:.1f} s')
        check(slow.carried > STEPS * PARAMETERS, f'only {slow.carried} bytes went through the proxy')


@case('one packet of 20 is lost: the same bits')
def _():
    with rule('filter FORWARD --match statistic --mode random --probability 0.05 --jump DROP') as lossy:
        began = time.monotonic()
        for out in finish(start_on([a, b, c], ['mlp', 'multi_worker', 1, 4])):
            check(digest(out) == WANT, out)
        print(f'# {lossy.packets()} packets lost, {time.monotonic() - began:.1f} s')
        check(lossy.packets() > 0, 'no packet was lost')


@case("the coordinator's connections are cut: they are made anew, and the training goes on to the same bits")
def _():
    with proxy(COORDINATOR) as control:
        processes = under_way(start_on([a, b], ['mlp', 'multi_worker', 1, 4], SLOW='500'))
        control.cut()
        for out in finish(processes):
            check(digest(out) == WANT, out)


@case("the connections between two workers are cut: both sides say at once with whom")
def _():
    with proxy(GRADIENTS) as between:
        processes = under_way(start_on([a, b], ['mlp', 'multi_worker', 1, 4, ENDLESS]))
        began = time.monotonic()
        between.cut()
        for p in processes:
            expect_error(p, began, 3, A_WORKER)


@case('nothing is carried between two workers that live: both say who waited for whom, after the time-out of 10 s')
def _():
    with proxy(GRADIENTS) as between:
        processes = under_way(start_on([a, b], ['mlp', 'multi_worker', 1, 4, ENDLESS]))
        began = time.monotonic()
        between.carries.clear()
        for p in processes:
            expect_error(p, began, 11, A_WORKER + r' has waited \d+\.\d s for worker [01] \(')


# The chief ends a second after it has sent the reason, so that the others receive it.
@case('a worker is cut off: the others name it, it names the coordinator, as soon as it is taken for dead')
def _():
    processes = under_way(start_on(hosts, ['mlp', 'multi_worker', 1, 4, ENDLESS]))
    with nothing_from(c), nothing_to(c):
        began = time.monotonic()
        for p in processes[:2]:
            expect_error(p, began, 8, r'worker 2 \(rank 2, 10\.77\.2\.2, pid \d+\) is considered dead: no heartbeat for \d\.\d s')
        expect_error(processes[2], began, 8, f'the coordinator at 10.77.0.2:{CONTROL} is lost: no answer for ')


@case('the coordinator is heard, but does not hear: both sides end as if they were cut off')
def _():
    processes = under_way(start_on([a, b], ['mlp', 'multi_worker', 1, 4, ENDLESS], HEARTBEAT='1000'))
    with nothing_to(a):
        began = time.monotonic()
        expect_error(processes[0], began, 6, A_WORKER + ' is considered dead: ')
        # Or it first receives the message that the other one has ended.
        expect_error(processes[1], began, 6, f'the coordinator at 10.77.0.2:{CONTROL} is lost: no answer for |process 1 lost or waited in vain for process 0: ')


@case('an elastic training, and a worker is cut off: only the side of the coordinator goes on, to the same bits')
def _():
    processes = under_way(start_on(hosts, ['mlp', 'multi_worker', 1, 4], ELASTIC='2', HEARTBEAT='1000', SLOW='500'))
    with nothing_from(c), nothing_to(c):
        began = time.monotonic()
        for out in finish(processes[:2]):
            check(digest(out) == WANT, out)
        took = check_took(began, 8)
        print(f'# ended after {took:.1f} s')
        expect_error(processes[2], began, 8, f'the coordinator at 10.77.0.2:{CONTROL} is lost: no answer for ')


for h in hosts:
    h.first.kill()
sys.exit(finish_tests())
