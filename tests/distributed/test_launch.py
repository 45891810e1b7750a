#!/usr/bin/env python3
"""examples/launch: the environment of its processes, their output, and how all of them end."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "examples/launch"
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have set it to be ignored
PATIENCE = 60  # seconds until something counts as hanging
results = []


def check(passed, what):
    results.append(bool(passed))
    print(f"{'ok' if passed else 'not ok'} {len(results)} - {what}", flush=True)


def start(options, script, *arguments, **more):
    """Starts the launcher on a Python script. Its pipes have no buffer, since communicate does not return what readline has buffered."""
    command = [LAUNCH, *options, "--", sys.executable, "-u", "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def launch(options, script, *arguments, **more):
    """Runs the launcher. Returns its exit status, output and errors."""
    process = start(options, script, *arguments, **more)
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out.decode(), err.decode()


def by_process(text):
    """The lines of each process, without its name in front."""
    lines = {}
    for line in text.splitlines():
        name, bar, rest = line.partition(" | ")
        lines.setdefault(name.strip() if bar else "launch", []).append(rest if bar else line)
    return lines


def running(marker):
    """Processes with the marker among their arguments. (The dead have none.)"""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (folder / "cmdline").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            pass
    return found


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def read_until(process, count, word):
    """Reads lines until `count` of them contain the word."""
    while count:
        line = process.stdout.readline()
        if not line:
            return False
        count -= word.encode() in line
    return True


SHOW = """
import json, os, sys
names = ['TF_CONFIG', 'RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'STRATA_RUN_ID']
print(json.dumps({name: os.environ.get(name) for name in names} | {'stdin': sys.stdin.read(), 'arguments': sys.argv[1:]}))
"""


def environment():
    options = ["-n", "2", "--ps", "2", "--chief", "--evaluator"]
    inherited = os.environ | {"RANK": "9", "MASTER_PORT": "9", "TF_CONFIG": "old"}
    status, out, _ = launch(options, SHOW, "a b", "--epochs", "-n", "--", "'", env=inherited, stdin=subprocess.PIPE)
    seen = {name: json.loads(lines[0]) for name, lines in by_process(out).items()}
    names = ["chief 0", "worker 0", "worker 1", "ps 0", "ps 1", "evaluator 0"]
    check(status == 0 and sorted(seen) == sorted(names), "every process of every role is started once")

    configs = {name: json.loads(values["TF_CONFIG"]) for name, values in seen.items()}
    cluster = configs["chief 0"]["cluster"]
    check(all(config["cluster"] == cluster for config in configs.values()), "all see the same cluster")
    check(
        {role: len(list_) for role, list_ in cluster.items()} == {"chief": 1, "worker": 2, "ps": 2, "evaluator": 1},
        "with all members",
    )
    check(
        all(f"{c['task']['type']} {c['task']['index']}" == name for name, c in configs.items()), "and each finds its own task"
    )
    addresses = [address for list_ in cluster.values() for address in list_]
    ports = [int(address.rpartition(":")[2]) for address in addresses]
    check(
        all(a.startswith("127.0.0.1:") for a in addresses) and len(set(ports)) == 6, "addresses differ and are of the loopback"
    )
    check(all(1024 <= port < 32768 for port in ports), "ports are not those of outgoing connections")

    trainers = names[:3]
    check([seen[name]["RANK"] for name in names] == ["0", "1", "2", None, None, None], "chief and workers alone have a rank")
    check(all(seen[n]["WORLD_SIZE"] == seen[n]["LOCAL_WORLD_SIZE"] == "3" for n in trainers), "of as many as train")
    check(all(seen[n]["LOCAL_RANK"] == seen[n]["RANK"] for n in trainers), "the same on this host")
    check(
        all(f"{seen[n]['MASTER_ADDR']}:{seen[n]['MASTER_PORT']}" == cluster["chief"][0] for n in trainers),
        "and MASTER_ADDR and MASTER_PORT are those of rank 0",
    )
    check(all(seen[n]["MASTER_PORT"] is None for n in names[3:]), "what the launcher itself inherited is not passed on")
    check(len({values["STRATA_RUN_ID"] for values in seen.values()}) == 1, "all share one run id")
    check(all(v["arguments"] == ["a b", "--epochs", "-n", "--", "'"] for v in seen.values()), "arguments arrive as they were")
    check(all(v["stdin"] == "" for v in seen.values()), "no process waits for input")

    _, alone, _ = launch(["-n", "1"], SHOW)
    values = json.loads(by_process(alone)["worker 0"][0])
    check(values["STRATA_RUN_ID"] != seen["chief 0"]["STRATA_RUN_ID"], "another run has another id")
    check(list(json.loads(values["TF_CONFIG"])["cluster"]) == ["worker"], "roles without members are left out")


def ports_differ():
    first = start(["-n", "40"], SHOW + "import time; time.sleep(1000)")
    second = start(["-n", "40"], SHOW + "import time; time.sleep(1000)")
    ports = []
    for process in (first, second):
        config = json.loads(json.loads(process.stdout.readline().partition(b" | ")[2])["TF_CONFIG"])
        ports += config["cluster"]["worker"]
    for process in (first, second):
        process.terminate()
        process.communicate(timeout=PATIENCE)
    check(len(set(ports)) == 80, "two launchers at the same time choose different ports")


def failures():
    marker = uuid.uuid4().hex
    script = "import os, sys, time; sys.exit(7) if os.environ['RANK'] == '1' else time.sleep(1000)"
    status, _, err = launch(["-n", "3"], script, marker)
    check(status == 7 and "launch: worker 1 failed with status 7" in err, "one that fails ends all, with its status")
    check(not running(marker), "no process is left")

    script = "import os, time; os.kill(os.getpid(), 9) if os.environ['RANK'] == '0' else time.sleep(1000)"
    status, _, err = launch(["-n", "2"], script)
    check(status == 137 and "launch: worker 0 was ended by signal 9 (Killed)" in err, "so does one that a signal ends")

    script = """
import os, signal, sys, time
if os.environ['RANK'] == '0':
    while not os.path.exists(sys.argv[1]): time.sleep(0.01)
    sys.exit(5)
signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), sys.exit(3)))
open(sys.argv[1], 'w')
time.sleep(1000)
"""
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = launch(["-n", "2"], script, folder + "/ready")
    check(
        status == 5 and by_process(out) == {"worker 1": ["asked"]}, "the others are asked first, their status is not the cause"
    )
    check("worker 1 failed" not in err, "and they are not blamed")

    marker = uuid.uuid4().hex
    script = """
import os, signal, subprocess, sys, time
if os.environ['RANK'] == '1':
    while not os.path.exists(sys.argv[1]): time.sleep(0.01)
    sys.exit(4)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', *sys.argv[1:]])
open(sys.argv[1], 'w')
time.sleep(1000)
"""
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = launch(["-n", "2", "--grace", "0.5"], script, folder + "/ready", marker)
    check(
        status == 4 and "launch: killing worker 0, still there 0.5 s after" in err,
        "one that hangs is killed after the grace time",
    )
    check(wait_until(lambda: not running(marker)), "and what it started, too")

    check(launch(["-n", "2"], "")[0] == 0, "when all succeed, the status is 0")


def restarts():
    script = """
import os, sys, time
rank, folder = os.environ['RANK'], sys.argv[1]
lives = len(os.listdir(folder))
if rank == '1':
    open(f'{folder}/{lives}', 'w')
    print('life', lives, os.environ['MASTER_PORT'], flush=True)
    sys.exit(7 if lives < 2 else 0)
while lives < 3:
    time.sleep(0.01)
    lives = len(os.listdir(folder))
"""
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = launch(["-n", "2", "--restarts", "2"], script, folder)
    shown = [line.split() for line in by_process(out)["worker 1"]]
    check(
        status == 0 and [life for _, life, _ in shown] == ["0", "1", "2"] and len({port for _, _, port in shown}) == 1,
        "one that fails is started again as it was, and its earlier failures do not count",
    )
    check(err.count("launch: worker 1 failed with status 7 and is started again") == 2, "which is said")
    with tempfile.TemporaryDirectory() as folder:
        status, _, err = launch(["-n", "2", "--restarts", "1"], script, folder)
    check(status == 7 and err.splitlines()[-1] == "launch: worker 1 failed with status 7", "only as often as is asked for")


def other_roles_end():
    script = """
import json, os, sys, time
role = json.loads(os.environ['TF_CONFIG'])['task']['type']
if role == 'worker':
    sys.exit(0)
time.sleep(%s)
print('done', flush=True)
sys.exit(%s)
"""
    status, out, err = launch(["-n", "2", "--ps", "1", "--grace", "0.5"], script % (1000, 0))
    check((status, out, err) == (0, "", ""), "parameter servers are ended when the workers have finished, which is no failure")
    status, out, _ = launch(["-n", "2", "--evaluator", "--grace", "1000"], script % (0.5, 0))
    check(status == 0 and by_process(out) == {"evaluator 0": ["done"]}, "the evaluator gets the grace time first")
    check(launch(["-n", "2", "--ps", "1"], script % (0, 6))[0] == 6, "a parameter server that fails is a failure")


def lines():
    script = """
import os
def write(to, data):
    while data:
        data = data[os.write(to, data[:7001]):]
name = os.environ['RANK'].encode()
for i in range(0, 20000, 100):
    write(1, b''.join(b'%s:%d:' % (name, j) + name * (j % 300) + b'\\n' for j in range(i, i + 100)))
    write(2, b'e%s:%d\\n' % (name, i))
"""
    status, out, err = launch(["-n", "4"], script)
    shown = by_process(out)
    expected = {f"worker {r}": [f"{r}:{j}:{str(r) * (j % 300)}" for j in range(20000)] for r in range(4)}
    check(status == 0 and shown == expected, "80000 lines come whole, in order and with the right name in front")
    expected = {f"worker {r}": [f"e{r}:{i}" for i in range(0, 20000, 100)] for r in range(4)}
    check(by_process(err) == expected, "errors likewise, on the error stream")

    status, out, _ = launch(["-n", "1"], "import os; os.write(1, b'a\\n\\nlast')")
    check(out == "worker 0 | a\nworker 0 | \nworker 0 | last\n", "a last line without an end is shown, and gets one")
    status, out, _ = launch(["-n", "1"], "import os; os.write(1, b'10%\\r20%\\r30%\\n\\xff\\r\\n'.replace(b'\\xff', b'ok'))")
    check(out == "worker 0 | 30%\nworker 0 | ok\n", "what a carriage return overwrites is left out")
    status, out, _ = launch(["-n", "1"], "print('x' * 1000000)")
    parts = by_process(out)["worker 0"]
    check("".join(parts) == "x" * 1000000 and 7 < len(parts) < 100, "a line without end is cut instead of filling the memory")
    process = start(["-n", "10", "--ps", "1"], "print('here')")
    names = {line.partition(b" | ")[0] for line in process.communicate(timeout=PATIENCE)[0].splitlines()}
    check(names == {b"worker %d" % i for i in range(10)} | {b"ps 0    "}, "names are as wide as the widest")


WAIT = """
import os, signal, sys, time
def handle(number, frame):
    print('got', number, flush=True)
    if %s: sys.exit(0)
signal.signal(signal.SIGINT, handle)
signal.signal(signal.SIGTERM, handle)
print('ready', flush=True)
while True: time.sleep(1000)
"""


def signals():
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start(["-n", "3", "--ps", "1"], WAIT % "True")
        read_until(process, 4, "ready")
        process.send_signal(number)
        out = by_process(process.communicate(timeout=PATIENCE)[0].decode())
        check(
            process.returncode == 0 and list(out.values()) == [[f"got {number.value}"]] * 4,
            f"{number.name} is passed on once, and a program that heeds it succeeds",
        )
        marker = uuid.uuid4().hex
        script = "import signal, time; signal.signal(2, signal.SIG_DFL); print('ready'); time.sleep(1000)"
        process = start(["-n", "2"], script, marker)
        read_until(process, 2, "ready")
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
        check(process.returncode == 128 + number and not running(marker), f"one that {number.name} ends gives {128 + number}")

    process = start(["-n", "2", "--grace", "0.5"], WAIT % "False")
    read_until(process, 2, "ready")
    process.terminate()
    process.communicate(timeout=PATIENCE)
    check(process.returncode == 137, "one that does not end in time is killed")
    process = start(["-n", "2", "--grace", "1000"], WAIT % "False")
    read_until(process, 2, "ready")
    process.send_signal(signal.SIGINT)
    read_until(process, 2, "got 2")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    check(process.returncode == 137, "a second signal ends everything at once")


def nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    process = start(["-n", "2"], WAIT % "True")
    signal.signal(signal.SIGHUP, before)
    read_until(process, 2, "ready")
    os.kill(process.pid, signal.SIGHUP)
    process.terminate()
    out = by_process(process.communicate(timeout=PATIENCE)[0].decode())
    check(process.returncode == 0 and list(out.values()) == [["got 15"]] * 2, "a signal that nohup ignores stays ignored")


def terminal():
    """In a terminal, Ctrl-C goes to the launcher's process group: programs must get it once all the same."""
    process = start(["-n", "2"], WAIT % "True", start_new_session=True)
    read_until(process, 2, "ready")
    os.killpg(process.pid, signal.SIGINT)
    out = by_process(process.communicate(timeout=PATIENCE)[0].decode())
    check(process.returncode == 0 and list(out.values()) == [["got 2"]] * 2, "Ctrl-C arrives once")


def orphans():
    marker = uuid.uuid4().hex
    script = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if sys.argv[-1] != 'grandchild':
    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)', *sys.argv[1:], 'grandchild'])
print('ready', flush=True)
time.sleep(1000)
"""
    process = start(["-n", "3", "--grace", "0.5"], script, marker)
    read_until(process, 3, "ready")
    # A process that has just been started has no arguments for a moment.
    check(wait_until(lambda: len(running(marker)) == 8), "the launcher, its guard, three processes and three that they started")
    process.kill()
    check(wait_until(lambda: not running(marker)), "none outlives a launcher that was killed")
    process.communicate(timeout=PATIENCE)

    marker = uuid.uuid4().hex
    process = start(["-n", "2"], "while True: print('x' * 50)", marker)
    process.stdout.readline()
    process.stdout.close()
    status = process.wait(timeout=PATIENCE)
    check(status == 141 and wait_until(lambda: not running(marker)), "all end when the output is no longer read")
    process.stderr.close()


def command_lines():
    wrong = [[], ["-n"], ["-n", "2"], ["-n", "two", "true"], ["-n", "-1", "true"], ["-n", "0", "true"], ["-n", "1001", "true"]]
    wrong += [["-n", "1", "--grace", "x", "true"], ["-n", "1", "--ps", "1.5", "true"], ["--unknown", "-n", "1", "true"]]
    for arguments in wrong:
        run = subprocess.run([LAUNCH, *arguments], capture_output=True, text=True, timeout=PATIENCE)
        check(run.returncode == 2 and "launch: error:" in run.stderr, f"'launch {' '.join(arguments)}' is refused")
    run = subprocess.run([LAUNCH, "--help"], capture_output=True, text=True, timeout=PATIENCE)
    check(run.returncode == 0 and "--evaluator" in run.stdout, "--help explains")
    run = subprocess.run([LAUNCH, "-n", "0", "--chief", "true"], timeout=PATIENCE)
    check(run.returncode == 0, "a chief alone is enough, and PATH is searched")

    run = subprocess.run([LAUNCH, "-n", "2", "no-such-program"], capture_output=True, text=True, timeout=PATIENCE)
    # One of the two may be ended before it says so.
    check(
        run.returncode == 127 and " | cannot run no-such-program: No such file or directory" in run.stderr,
        "a program that is not there gives 127",
    )
    with tempfile.NamedTemporaryFile() as file:
        run = subprocess.run([LAUNCH, "-n", "2", file.name], capture_output=True, text=True, timeout=PATIENCE)
        check(run.returncode == 126 and "Permission denied" in run.stderr, "one that cannot be executed gives 126")


environment()
ports_differ()
failures()
restarts()
other_roles_end()
lines()
signals()
nohup()
terminal()
orphans()
command_lines()
print(f"1..{len(results)}")
sys.exit(not all(results))
