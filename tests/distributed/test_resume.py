# needs: openssl protozero
"""Trainings in one process or several that are killed, terminated and started again end with the bits of an uninterrupted one."""
import itertools, json, os, random, re, signal, struct, sys, tempfile, time
from workers import case, check, finish, finish_tests, free_ports, read_line, start as start_process

LEAVES = 4
SEED = random.randrange(10**6)
chance = random.Random(SEED)
print('# seed', SEED, flush=True)
scratch = tempfile.TemporaryDirectory()
folders = (os.path.join(scratch.name, str(i)) for i in itertools.count())


def start(folder, strategy, count=1, threads=1, pause=0):
    """Starts the processes of one training; only the first of them has the folder."""
    addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
    return [start_process([folder if i == 0 else folder + '-not-here', strategy, threads, LEAVES, pause],
                          {'cluster': {'worker': addresses}, 'task': {'type': 'worker', 'index': i}}, 'resume') for i in range(count)]


def digests(outputs):
    lines = [line for out in outputs for line in out.splitlines() if line.startswith('digest')]
    check(len(lines) == len(outputs), outputs)
    return set(lines)


def first_step(output):
    found = re.search(r'under way at step (\d+)', output)
    return int(found[1]) if found else -1


STEPS = 24
PAUSE = 5  # ms per step, so that there is time for interruptions
began = time.monotonic()
expected = digests(finish(start(next(folders), 'one_device', pause=PAUSE)))
LASTS = time.monotonic() - began  # the duration of a training on this machine


began_at = set()  # the steps at which the trainings of a case began


def until_one_went_on(times):
    """Yields folders for `times` trainings, and for more if none of them began in the middle: on a busy machine all kills may come too
    early or too late."""
    began_at.clear()
    for i in itertools.count():
        if i >= times and any(0 < step < STEPS for step in began_at):
            return
        check(i < 10 * times, f'no training went on from the middle, all began at {began_at}')
        yield next(folders)


def train_with_kills(strategy, count, kills, folder):
    """Kills one of the processes, or all, at a random time; several only once they are connected. Returns where the trainings began."""
    begins = []
    for _ in range(kills):
        processes = start(folder, strategy, count, chance.choice([1, 2]), PAUSE)
        heard = [read_line(p) for p in processes if count > 1]
        time.sleep(chance.uniform(0, 1.5 * LASTS))
        for p in chance.choice([processes, [chance.choice(processes)]]):
            p.kill()
        outputs = finish(processes)
        begins.append(max(first_step(out) for out in heard + outputs))
        for out in outputs:  # those that were not killed
            check('error: ' not in out or 'communication_error: ' in out, out)
    return begins


@case('kill -9 at 21 random moments, one process: the bits of the training that was left alone')
def _():
    for folder in until_one_went_on(7):
        begins = train_with_kills(chance.choice(['one_device', 'mirrored']), 1, 3, folder)
        outputs = finish(start(folder, 'one_device', threads=2))
        check(digests(outputs) == expected, (begins, outputs))
        check(not os.path.exists(folder), 'the backup is still there')
        began_at.update(begins + [first_step(outputs[0])])


for strategy in ('multi_worker', 'multi_worker_tcp'):
    @case(f'{strategy}: two processes, killed and started again, then by one or two: the same bits')
    def _():
        for folder, count in zip(until_one_went_on(3), itertools.cycle((1, 2, 3))):
            begins = train_with_kills(strategy, 2, 3, folder)
            outputs = finish(start(folder, strategy, count) if count > 1 else start(folder, 'one_device'))
            check(digests(outputs) == expected, (begins, outputs))
            check(len({first_step(out) for out in outputs}) == 1, outputs)
            check(not os.path.exists(folder + '-not-here'), 'a process other than the chief has written')
            began_at.update(begins + [first_step(outputs[0])])


@case('zero: each of three processes keeps a slice of the slots; killed and started again, then by others: the same bits')
def _():
    ends = itertools.cycle((('multi_worker_zero', 2), ('one_device', 1), ('multi_worker_tcp_zero', 4), ('multi_worker', 3)))
    for folder, (strategy, count) in zip(until_one_went_on(3), ends):
        begins = train_with_kills('multi_worker_zero', 3, 2, folder)
        outputs = finish(start(folder, strategy, count))
        check(digests(outputs) == expected, (begins, outputs))
        began_at.update(begins + [first_step(outputs[0])])


@case('zero: an elastic training is refused, and so are processes of which only one has it')
def _():
    for out in finish(start(next(folders), 'multi_worker_zero_elastic', 2)):
        check('a training with zero is not elastic: start it again from a snapshot' in out, out)
    both = [f'127.0.0.1:{p}' for p in free_ports(2)]
    for out in finish([start_process([next(folders), strategy, 1, LEAVES], {'cluster': {'worker': both}, 'task': {'type': 'worker', 'index': i}}, 'resume')
                       for i, strategy in enumerate(('multi_worker', 'multi_worker_zero'))]):
        check('zero<1>' in out, out)


@case('gradients in bfloat16: a snapshot drops what rounding has left, so that killed trainings have the bits of one left alone')
def _():
    strategy = 'multi_worker_bf16'
    alone = digests(finish(start(next(folders), strategy, 2)))
    check(len(alone) == 1 and alone != expected, (alone, expected))
    for folder in until_one_went_on(3):
        begins = train_with_kills(strategy, 2, 2, folder)
        outputs = finish(start(folder, strategy, 2))
        check(digests(outputs) == alone, (begins, outputs))
        began_at.update(begins + [first_step(outputs[0])])


def train_with_terminations(strategy, count, times, folder, ask):
    """Sends the signal to some of the processes: all end after the same step. Returns the outputs of the training that reaches its end,
    and how many were interrupted before it."""
    for interrupted in range(times):
        processes = start(folder, strategy, count, pause=PAUSE)
        heard = [read_line(p) for p in processes]
        check(all(line.startswith('under way') for line in heard), heard)
        time.sleep(chance.uniform(0, STEPS * PAUSE / 1000))  # every training takes at least that long
        for p in chance.sample(processes, chance.randrange(1, count + 1)):
            p.send_signal(ask)
        outputs = finish(processes)
        if any(p.returncode == -ask for p in processes):  # that came when fit had ended
            return finish(start(folder, strategy, count)), interrupted
        ends = {line for out in outputs for line in out.splitlines() if line}
        check(len(ends) == 1, outputs)
        if ends == expected:  # it was faster
            return outputs, interrupted
        check([p.returncode for p in processes] == [75] * count, outputs)
        check(os.path.exists(os.path.join(folder, 'snapshot.safetensors')), 'there is no snapshot')
    return finish(start(folder, strategy, count)), times


def check_interrupted(strategy, count, times, trainings, ask=signal.SIGTERM):
    """Trains `trainings` times, and again while no training was interrupted: a signal may come too late."""
    interruptions = 0
    for number in itertools.count(1):
        outputs, interrupted = train_with_terminations(strategy, count, times, next(folders), ask)
        check(digests(outputs) == expected, outputs)
        interruptions += interrupted
        if number >= trainings and interruptions > 0:
            return
        check(number < 20, 'no training was interrupted')


for strategy, count in (('one_device', 1), ('mirrored', 1), ('multi_worker', 2), ('multi_worker_tcp', 3)):
    @case(f'{strategy}: SIGTERM, one is enough: {count} processes end after the same step, and go on from there')
    def _():
        check_interrupted(strategy, count, times=3, trainings=3)


@case('SIGINT with stop_on_interrupt: the same')
def _():
    check_interrupted('multi_worker', 2, times=2, trainings=1, ask=signal.SIGINT)


@case('a SIGTERM ends the training after the step at hand, and the next one begins there')
def _():
    folder = next(folders)
    processes = start(folder, 'one_device', pause=200)
    read_line(processes[0])
    time.sleep(0.5)
    processes[0].send_signal(signal.SIGTERM)
    out = finish(processes)[0]
    found = re.search(r'interrupted at step (\d+)', out)
    check(found and 0 < int(found[1]) < STEPS, out)
    outputs = finish(start(folder, 'one_device'))
    check(first_step(outputs[0]) == int(found[1]) and digests(outputs) == expected, outputs)


def crc32c(data):
    """CRC-32C computed bit by bit, as RFC 3720 defines it."""
    state = 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state ^ 0xFFFFFFFF


@case('a snapshot is a safetensors file that ends with the CRC-32C of all before')
def _():
    folder = next(folders)
    processes = start(folder, 'one_device', pause=200)
    read_line(processes[0])
    time.sleep(0.5)
    processes[0].terminate()
    finish(processes)
    with open(os.path.join(folder, 'snapshot.safetensors'), 'rb') as file:
        content = file.read()
    size, = struct.unpack_from('<Q', content)
    header = json.loads(content[8:8 + size])
    facts = header.pop('__metadata__')
    layers = ['conv2d/kernel', 'conv2d/bias', 'batch_normalization/gamma', 'batch_normalization/beta', 'dense/kernel', 'dense/bias']
    state = ['batch_normalization/moving_mean', 'batch_normalization/moving_variance']
    slots = [f'optimizer/{k}/{name}' for k in range(2) for name in layers]
    check(set(header) == set(layers + state + slots + ['crc32c']), sorted(header))
    check(header['optimizer/1/conv2d/kernel']['shape'] == [3, 3, 1, 8] and header['dense/kernel']['dtype'] == 'F32', header)
    check(8 + size + header['crc32c']['data_offsets'][1] == len(content), header['crc32c'])
    check(struct.unpack('<I', content[-4:])[0] == crc32c(content[:-4]), 'the checksum is wrong')
    check('seed 5' in facts['description'] and 'optimizer adam' in facts['description'] and int(facts['step']) > 0, facts)


@case('a damaged snapshot: the chief says so, both processes begin at the one before')
def _():
    folder = next(folders)
    processes = start(folder, 'one_device', pause=200)
    read_line(processes[0])
    while not os.path.exists(os.path.join(folder, 'snapshot.previous.safetensors')):
        time.sleep(0.01)
    processes[0].terminate()
    finish(processes)
    newest = os.path.join(folder, 'snapshot.safetensors')
    os.truncate(newest, os.path.getsize(newest) // 2)
    outputs = finish(start(folder, 'multi_worker', 2))
    check(newest + ' is damaged' in outputs[0] and 'damaged' not in outputs[1], outputs)
    check(digests(outputs) == expected and first_step(outputs[0]) == first_step(outputs[1]), outputs)


@case('no snapshot that could be used: all processes say why, and end')
def _():
    folder = next(folders)
    os.makedirs(folder)
    open(os.path.join(folder, 'snapshot.safetensors'), 'w').close()
    outputs = finish(start(folder, 'multi_worker', 2))
    for out in outputs:
        check('snapshot.safetensors is damaged: it is empty' in out and 'under way' not in out, outputs)


sys.exit(finish_tests())
