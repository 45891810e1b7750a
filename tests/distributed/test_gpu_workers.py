# needs: openssl protozero emulated_cuda
"""Processes with emulated GPUs: they train to the bits of one GPU, or with sums of NCCL to nearly its loss, and report what went
wrong."""
import functools, random, sys, time
from elastic import Worker
from workers import case, check, check_took, configurations, digest, finish, finish_tests, free_ports, line_of, start

LEAVES = 6


def workers(count, strategy, gpus, epochs=2, strategies=None, **more):
    addresses = [f'127.0.0.1:{p}' for p in free_ports(count)]
    return [Worker([(strategies or {}).get(i, strategy), LEAVES, epochs], config, 'gpu_worker', STRATA_EMULATED_GPUS=str(gpus), **more)
            for i, config in enumerate(configurations({'worker': addresses}).values())]


@functools.cache
def one_gpu(epochs=2):
    return finish([start(['one_gpu', LEAVES, epochs], program='gpu_worker', STRATA_EMULATED_GPUS='1')])[0]


def loss(output):
    return float(line_of(output, 'loss').split()[1])


@case('2 workers with a GPU or two each, 3 workers that share 2: the bits of one GPU')
def _():
    want = digest(one_gpu())
    for count, gpus in ((2, 2), (2, 4), (3, 2)):
        for w in workers(count, 'deterministic', gpus):
            out = w.finish()
            check(digest(out) == want, out)


@case('a variable of the emulation that is no number is an error that the program can catch')
def _():
    for gpus in ('two', '-1', '65', '4294967298'):
        out = finish([start(['one_gpu', LEAVES], program='gpu_worker', STRATA_EMULATED_GPUS=gpus)])[0]
        check(f"error: STRATA_EMULATED_GPUS is '{gpus}', but must be a whole number from 0 to 64" in out, out)


@case('options of the CPU are no options of GPUs')
def _():
    out = workers(1, 'deterministic', 1, COMPUTE_LEAVES='8')[0].finish()
    check('error: multi_worker_mirrored: options.compute are those of workers without a list of devices; with one, write their options '
          'after the list: {tf_config(), gpus(), {.leaves = 8}}' in out, out)


@case('with sums of NCCL all workers have the same bits, and nearly the loss of one GPU')
def _():
    want = one_gpu()
    for count, gpus in ((2, 2), (3, 6)):
        outputs = [w.finish() for w in workers(count, 'fastest', gpus)]
        for out in outputs:
            check(digest(out) == digest(outputs[0]), outputs)
            check(abs(loss(out) - loss(want)) < 1e-3 * loss(want), f'{out}\n{want}')
        again = workers(count, 'fastest', gpus)[0].finish()
        check(digest(again) == digest(outputs[0]), 'another run has other bits')


@case('workers that add up in different ways are named, on both sides')
def _():
    for w in workers(2, 'fastest', 2, strategies={1: 'deterministic'}):
        out = w.finish()
        check('does not train what' in out and 'added by NCCL' in out, out)


for strategy in ('deterministic', 'fastest'):
    @case(f'{strategy}: a killed worker ends the others, with an error that names it')
    def _():
        for _ in range(3):
            all = workers(3, strategy, 3, 1000, STEPS='0')
            for w in all:
                w.await_line('step 3')
            time.sleep(random.uniform(0, 0.05))
            all[1].process.kill()
            began = time.monotonic()
            for w in (all[0], all[2]):
                out = w.finish()
                check('communication_error: ' in out and 'worker 1 (rank 1, ' in out.splitlines()[-1], out)
            print(f'# {check_took(began, 5):.2f} s', flush=True)


@case('a worker whose GPU fails ends with that error, and the others end, too')
def _():
    all = workers(3, 'fastest', 3, 1000, LOSE='500')  # gpu(1) belongs to worker 1
    outputs = [w.finish() for w in all]
    check('error: gpu(1) is lost: ' in outputs[1].splitlines()[-1], outputs[1])
    for i in (0, 2):
        check('communication_error: ' in outputs[i].splitlines()[-1], outputs[i])
        check('gpu(1) is lost: ' in outputs[i].splitlines()[-1], outputs[i])


for strategy in ('deterministic', 'fastest'):
    @case(f'{strategy}: an elastic training goes on without the worker that is killed')
    def _():
        all = workers(3, strategy, 3, 4, ELASTIC='1', STEPS='50')
        for w in all:
            w.await_line('step 3')
        all[2].process.kill()
        outputs = [w.finish() for w in all[:2]]
        check('; 2 workers go on' in outputs[0], outputs[0])
        check(digest(outputs[0]) == digest(outputs[1]), outputs)
        want = one_gpu(4)
        if strategy == 'deterministic':
            check(digest(outputs[0]) == digest(want), outputs)
        check(abs(loss(outputs[0]) - loss(want)) < 1e-2 * loss(want), f'{outputs[0]}\n{want}')


sys.exit(finish_tests())
