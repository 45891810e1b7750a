# needs: openssl protozero
"""Slurm itself starts trainings: a controller and nodes, all on this machine, run the batch scripts of docs/clusters.md and
docs/model_parallel.md.

They live in namespaces that end with the test: processes, network, and names of hosts. Where Slurm is not installed, or such
namespaces are not permitted, the test is skipped."""
import contextlib, os, pathlib, re, shutil, socket, subprocess, sys, tempfile
from workers import case, check, digest, expected, finish, finish_tests, start, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES = 4
os.environ['PATH'] += ':/usr/sbin:/sbin'

if 'STRATA_SLURM' not in os.environ:
    missing = [tool for tool in ('munged', 'slurmctld', 'slurmd', 'srun', 'ip', 'unshare') if not shutil.which(tool)]
    own = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc']
    why = ''
    if missing:
        why = 'there is no ' + ', '.join(missing)
    elif os.getuid() != 0:
        why = 'the daemons of Slurm want to be root'
    else:
        attempt = [*own, *'ip link add link0 type veth peer name link1'.split()]
        tried = subprocess.run(attempt, capture_output=True, text=True)
        if tried.returncode:
            why = 'no namespaces: ' + ' '.join(tried.stderr.split())
    if why:
        print(f'1..0 # SKIP {why}')
        sys.exit()
    os.execvpe(own[0], [*own, sys.executable, __file__], os.environ | {'STRATA_SLURM': '1'})

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(10.77.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName=node[1-{nodes}] NodeHostname={host} NodeAddr=10.77.0.[1-{nodes}] Port=7001-{last_port} CPUs=16
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=60, **more).stdout


@contextlib.contextmanager
def slurm(folder):
    """Runs the daemons of Slurm during a with statement. Each node has an address and a name; all of them are this machine."""
    run('ip', 'link', 'set', 'lo', 'up')
    run('ip', 'link', 'add', 'nodes', 'type', 'veth', 'peer', 'name', 'others')
    for link in ('nodes', 'others'):
        run('ip', 'link', 'set', link, 'up')
    for i in range(1, NODES + 1):
        run('ip', 'address', 'add', f'10.77.0.{i}/24', 'dev', 'nodes')
        (folder / f'spool.node{i}').mkdir()
    host = socket.gethostname()
    names = ''.join(f'10.77.0.{i} node{i}\n' for i in range(1, NODES + 1))
    (folder / 'hosts').write_text(f'127.0.0.1 localhost\n10.77.0.1 {host}\n{names}')
    run('mount', '--bind', folder / 'hosts', '/etc/hosts')
    (folder / 'state').mkdir()
    (folder / 'slurm.conf').write_text(CONFIGURATION.format(host=host, folder=folder, nodes=NODES, last_port=7000 + NODES))
    os.environ['SLURM_CONF'] = str(folder / 'slurm.conf')
    (folder / 'munge.key').write_bytes(os.urandom(1024))
    (folder / 'munge.key').chmod(0o400)
    files = {'key-file': 'key', 'socket': 'socket', 'pid-file': 'pid', 'seed-file': 'seed', 'log-file': 'log'}
    of_munge = [f'--{option}={folder}/munge.{end}' for option, end in files.items()]
    quiet = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    daemons = [subprocess.Popen(['munged', '--foreground', '--force', *of_munge], **quiet)]
    try:
        count = ['sinfo', '--noheader', '--format=%t %D']
        try:
            wait_until((folder / 'munge.socket').exists)
            daemons.append(subprocess.Popen(['slurmctld', '-D', '-c'], **quiet))
            daemons += [subprocess.Popen(['slurmd', '-D', '-N', f'node{i}'], **quiet) for i in range(1, NODES + 1)]
            wait_until(lambda: subprocess.run(count, capture_output=True, text=True).stdout == f'idle {NODES}\n')
        except AssertionError:
            words = ''.join(p.read_text() for p in folder.glob('*.log'))
            print('1..0 # SKIP the daemons do not run: ' + ' '.join(words.split())[-500:])
            sys.exit()
        yield
    finally:  # before the files that they write are removed
        for daemon in daemons:
            daemon.kill()
        for daemon in daemons:
            daemon.wait()


def state_of(job):
    return re.search(r'JobState=(\S+)', run('scontrol', 'show', 'job', job))[1]


def submit(folder, script, **variables):
    """Submits a job. Returns its number, and the file of its output."""
    (folder / 'job').write_text(script)
    command = ['sbatch', '--parsable', f'--output={folder}/%j.out', '--open-mode=append', folder / 'job']
    job = run(*command, env=os.environ | variables).strip()
    return job, folder / f'{job}.out'


def finished(job, output, states=('COMPLETED',)):
    wait_until(lambda: state_of(job) in ('COMPLETED', 'FAILED', 'CANCELLED', 'TIMEOUT', 'NODE_FAIL'))
    text = output.read_text()
    check(state_of(job) in states, f'{state_of(job)}: {text}')
    return text


with contextlib.ExitStack() as stack:
    folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
    WORKER = f"{os.environ['STRATA_PROGRAMS']}/distributed_worker mlp multi_worker 1 8"
    PAGES = [(ROOT / f'docs/{page}.md').read_text() for page in ('clusters', 'model_parallel')]
    BATCH, OF_STAGES = (re.search(r'^##+ Slurm\n.*?^```bash\n(.*?)^```', page, re.M | re.S)[1] for page in PAGES)
    want = expected('mlp', 8)
    of_one_device = digest(finish([start(['one_device'], program='stages')])[0])
    os.environ.pop('TF_CONFIG', None)
    os.environ.pop('STRATA_RUN_ID', None)
    os.environ['UNPROTECTED'] = '1'  # passed on by sbatch
    stack.enter_context(slurm(folder))

    def digests(text):
        return re.findall(r'^digest .*$', text, re.M)

    @case('the batch script of the documentation: 8 workers on 4 nodes train to the bits of one device')
    def _():
        check('build/train' in BATCH, BATCH)
        text = finished(*submit(folder, BATCH.replace('build/train', WORKER)))
        check(digests(text) == [want] * 8, text)

    @case('the batch script for divided networks: a pipeline over two nodes, and zero, to the bits of one device')
    def _():
        check('build/train' in OF_STAGES, OF_STAGES)
        stages = f"{os.environ['STRATA_PROGRAMS']}/distributed_stages workers"
        for program, bits in ((stages, of_one_device), (WORKER.replace('multi_worker', 'multi_worker_zero'), want)):
            text = finished(*submit(folder, OF_STAGES.replace('build/train', program)))
            check(digests(text) == [bits] * 2, text)

    PATIENT = BATCH.replace('--kill-on-bad-exit=1', '--kill-on-bad-exit=0 --label')

    def kill_task(number, output):
        """Kills a task when all are under way. Returns its process id."""
        wait_until(lambda: output.exists() and output.read_text().count('epoch') >= 8)
        for process in pathlib.Path('/proc').glob('[0-9]*'):
            with contextlib.suppress(OSError):  # it has just ended
                command = (process / 'cmdline').read_bytes().replace(b'\0', b' ')
                if command.startswith(WORKER.encode()) and f'SLURM_PROCID={number}\0'.encode() in (process / 'environ').read_bytes():
                    os.kill(int(process.name), 9)
                    return process.name
        check(False, f'there is no task {number}')

    @case('one worker is killed and srun waits for the others: they say which, where, and end by themselves')
    def _():
        job, output = submit(folder, PATIENT.replace('build/train', WORKER + ' 1000000'))
        victim = kill_task(5, output)
        text = finished(job, output, ('FAILED',))
        said = re.findall(r'^(\d): communication_error: .*worker 5 \(rank 5, node3, pid ' + victim, text, re.M)
        check(sorted(said) == list('0123467'), text[-3000:])
        for i in range(8):
            check(f'worker {i} (rank {i}, node{1 + i // 2}, pid ' in text, text[-3000:])

    @case('an elastic training: the others go on to the same bits')
    def _():
        job, output = submit(folder, PATIENT.replace('build/train', WORKER), ELASTIC='1', SLOW='1000')
        kill_task(5, output)
        text = finished(job, output, ('FAILED',))
        said = re.findall(r'^(\d): (digest .*)$', text, re.M)
        check(sorted(said) == [(str(i), want) for i in (0, 1, 2, 3, 4, 6, 7)], text[-3000:])

    @case('a job that is requeued: the next generation trains from the start')
    def _():
        job, output = submit(folder, BATCH.replace('build/train', WORKER), SLOW='2000')
        wait_until(lambda: output.exists() and output.read_text().count('epoch') >= 8)
        run('scontrol', 'requeue', job)
        wait_until(lambda: state_of(job) == 'PENDING')
        run('scontrol', 'update', f'JobId={job}', 'StartTime=now')  # instead of minutes later
        text = finished(job, output)
        check(digests(text) == [want] * 8, text)

sys.exit(finish_tests())
