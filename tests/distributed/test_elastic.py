# needs: openssl protozero
"""Elastic trainings: the remaining processes continue, a late one may join, and the bits are those of an undisturbed training."""
import random, signal, sys, time
from elastic import Times, Training, expected, lose_one
from workers import TooSlow, case, check, finish_tests, strategies

SEED = random.randrange(10**6)
chance = random.Random(SEED)
print('# seed', SEED, flush=True)

GONE_ON = 'without this process'


def loses(count, *victims, **options):
    training = Training(count, **options).under_way()
    time.sleep(chance.uniform(0, 0.2))
    return training, training.kill(*victims)


@case('a random worker is killed at a random moment, and perhaps started again, five times: the same bits')
def _():
    times = Times()
    for _ in range(5):
        lose_one(chance, times)
    times.report()
    if max(times.went_on) > 10 or max(times.joined, default=0) > 8:
        raise TooSlow(f'took {times.went_on} s, {times.joined} s')


for strategy in strategies():
    @case(f'{strategy}: two of four die, and two workers train to the same bits')
    def _():
        training, _ = loses(4, 1, 3, strategy=strategy)
        training.check_bits(0, 2)
        check('; 2 workers go on' in training.chief.output(), training.chief.output())


@case('one after the other dies, until only the chief is left; they come back: the same bits')
def _():
    training, _ = loses(3, 2, network='normalized', epochs=48, heartbeat=1000)
    training.chief.await_line('generation 1 ')
    training.kill(1)
    training.chief.await_line('; 1 worker goes on')
    for i in (1, 2):
        training.workers[i] = training.start(i)
    for i in (1, 2):
        training.workers[i].await_line('step ')
    training.check_bits()


@case('a late worker gets what callbacks remember: all end with the weights of the first epoch')
def _():
    training = Training(3, epochs=40, returns=True, heartbeat=1000)
    training.chief.await_line('epoch 2')
    training.kill(1)
    training.chief.await_line('generation 1 ')
    training.workers[1] = training.start(1)
    training.workers[1].await_line('step ')
    check(training.want != expected('mlp', 40), 'the last weights are the first ones')
    training.check_bits()


@case('a worker that stops is lost after three heartbeats; when it comes back, it is told so, and changes nothing')
def _():
    training = Training(3, epochs=48, heartbeat=1000).under_way()
    training.workers[1].process.send_signal(signal.SIGSTOP)
    stopped = time.time()
    try:
        took = training.chief.await_line('lost ' + training.name(1)) - stopped
        check(took > 2, took)
        if took > 6:
            raise TooSlow(f'took {took:.1f} s')
        training.chief.await_line('step', after=time.time())
    finally:
        training.workers[1].process.send_signal(signal.SIGCONT)
    out = training.workers[1].finish()
    check('communication_error: ' in out and GONE_ON in out.splitlines()[-1] and 'digest' not in out, out)
    training.check_bits(0, 2)


@case('a chief that stops: all others end; when it comes back, it goes on alone where that is enough, and ends where it is not')
def _():
    for least in (1, 2):
        training = Training(3, epochs=48, heartbeat=500, least=least).under_way()
        training.chief.process.send_signal(signal.SIGSTOP)
        try:
            for w in training.workers[1:]:
                out = w.finish()
                check('communication_error: ' in out, out)
        finally:
            training.chief.process.send_signal(signal.SIGCONT)
        if least == 1:
            training.check_bits(0)
        else:
            out = training.chief.finish()
            check('communication_error: lost ' in out and ': the training needs 2 workers, and has 1 (' in out, out)


@case('killed while the others evaluate: the same bits')
def _():
    training = Training(3, network='cnn', epochs=2, pause=0, EVALUATION='400')  # six batches each
    for w in training.workers:
        w.await_line('evaluates')
    time.sleep(chance.uniform(0, 0.3))
    training.kill(1)
    training.check_bits(0, 2)
    said = [line for _, line in training.chief.lines]
    formed = next(i for i, line in enumerate(said) if line.startswith('generation 1 '))
    check(any(line.startswith('step 5 ') for line in said[:formed]) and 'epoch 0' in said[formed:], said)


@case('the chief dies: all others end with an error within 2 s')
def _():
    training, killed = loses(3, 0)
    for w in training.workers[1:]:
        out = w.finish()
        check('communication_error: ' in out, out)
    took = time.time() - killed
    print(f'# {took:.2f} s')
    if took >= 2:
        raise TooSlow(f'took {took:.1f} s')


@case('fewer than have to be left: those that are left end, and name those that are gone')
def _():
    training, _ = loses(4, 1, 2, least=3)
    for i in (0, 3):
        out = training.workers[i].finish()
        last = out.splitlines()[-1]
        check(last.startswith('communication_error: lost ') and ': the training needs 3 workers, and has 2 (' in last, out)
        check(training.name(1) in last and training.name(2) in last, out)


@case('a late worker that dies while it joins: the others go on without it')
def _():
    training, _ = loses(3, 1, epochs=24)
    training.chief.await_line('generation 1 ')
    for after in (0, 0.05, 0.1, 0.15, 0.2, 0.25):
        late = training.start(1)
        time.sleep(after + chance.uniform(0, 0.05))
        late.process.kill()
    training.check_bits(0, 2)


@case('a late worker that trains something else is refused, and changes nothing')
def _():
    training, _ = loses(2, 1, epochs=48)
    training.arguments[3] = 8
    out = training.start(1).finish()
    check('does not train what the others do' in out and '4 leaves' in out and '8 leaves' in out, out)
    training.check_bits(0)


@case('more workers wanted than the cluster has')
def _():
    out = Training(2, least=3).chief.finish()
    check(out.strip() == 'error: elastic_options: least_workers is 3, but the cluster has 2 workers', out)


@case('without the option a loss ends all, as ever')
def _():
    training, _ = loses(3, 1, least=0)
    for i in (0, 2):
        out = training.workers[i].finish()
        check('communication_error: ' in out and training.name(1) in out, out)


sys.exit(finish_tests())
