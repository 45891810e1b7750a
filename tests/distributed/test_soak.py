# needs: openssl protozero
"""The script soak: some rounds of it, and that it detects broken promises."""
import os, subprocess, sys, tempfile, time
from system_faults import SystemFaults
from workers import case, check, finish_tests

SEED = 32538  # five strategies, all kinds of faults
SOAK = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'soak')


def soak(*options, **more):
    """Runs soak. Returns its exit status and its output."""
    done = subprocess.run([sys.executable, SOAK, *map(str, options)], env=os.environ | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


@case('five rounds with a seed: no failures')
def _():
    status, out = soak('--rounds', 5, '--seed', SEED)
    check(status == 0 and '# 5 rounds, 0 failures, ' in out, out)
    for line in out.splitlines()[-2:]:
        print(line)


@case('a process sees the time of day that it is given')
def _():
    faults = SystemFaults()
    faults.set_clock(-10**6)
    says = 'import time\nwhile input(): print(time.time(), flush=True)'
    with subprocess.Popen([sys.executable, '-uc', says], env=os.environ | faults.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for shift in (-10**6, 10**8):
            faults.set_clock(shift)
            process.stdin.write('now\n')
            process.stdin.flush()
            seen = float(process.stdout.readline()) - time.time()
            check(abs(seen - shift) < 60, f'{seen} instead of {shift}')
        process.kill()


# Replaces the program that trains by one that breaks a promise, except for the training on one device.
PROMISE = 'digest 1 of 6 epochs, weights 1'
BROKEN = {
    'other bits': ('echo digest 2 of 6 epochs, weights 2', 'has not ' + PROMISE),
    'an error without a cause': ('echo communication_error: worker 1 is gone; exit 3', 'should not have failed'),
    'two errors': ('echo error: one; echo error: two; exit 2', 'without one clear error'),
    'a crash': ('kill -SEGV $$', 'ends with status -11 without one clear error'),
    'a snapshot that is damaged': (f'echo snapshot.safetensors is damaged; echo {PROMISE}', 'is damaged'),
    'a file that is left': (f'mkdir -p $1; touch $1/remains; echo {PROMISE}', "files that should not be there: ['remains']"),
    'a temporary file that is left': (f'touch $TMPDIR/remains; echo {PROMISE}', 'files that should not be there'),
    'a snapshot after the end': (f'[[ $1 = *-of-* ]] || {{ mkdir -p $1; touch $1/snapshot.safetensors; }}; echo {PROMISE}', "files of a training that has ended: ['snapshot.safetensors']"),
    'a process that is left': (f'sleep 20 >/dev/null 2>&1 & echo {PROMISE}', 'processes that are left: '),
    'a process that hangs': ('exec sleep 20', 'still running at the end of the time for a round'),
}

for what, (commands, words) in BROKEN.items():
    @case(f'{what}: reported, with the command that repeats the round')
    def _():
        with tempfile.TemporaryDirectory() as programs:
            program = os.path.join(programs, 'distributed_resume')
            with open(program, 'w') as file:
                file.write(f'#!/bin/bash\nif [[ $2 = one_device ]]; then echo {PROMISE}; else {commands}; fi\n')
            os.chmod(program, 0o755)
            status, out = soak('--rounds', 1, '--seed', 7, '--limit', 3, '--strategy', 'multi_worker_mirrored', '--fault', 'clock_step', STRATA_PROGRAMS=programs)
        check(status == 1 and words in out and '# 1 rounds, 1 failures, ' in out, out)
        check('repeat with: tests/distributed/soak --seed 7 --round 1 --strategy multi_worker_mirrored --fault clock_step\n' in out, out)


sys.exit(finish_tests())
