"""Hosts and a network, as far as one machine can simulate them. Shared by test_network.py and soak.

Each host is a network namespace with a process namespace; this process is the router between them. All of it is in a
namespace that ends with this process."""
import contextlib, os, queue, shutil, socket, struct, subprocess, sys, threading, time

ENDS_WITH_ME = ['setpriv', '--pdeathsig', 'KILL']
os.environ['PATH'] += ':/usr/sbin:/sbin'


def become_router():
    """Restarts this program in namespaces of its own; returns the reason if they are not permitted."""
    if 'STRATA_ROUTER' not in os.environ:
        missing = [tool for tool in ('ip', 'iptables', 'unshare', 'nsenter') if not shutil.which(tool)]
        own = ['unshare', '--net', '--mount', *([] if os.getuid() == 0 else ['--user', '--map-root-user'])]
        attempt = ('ip link add link0 type veth peer name link1 && iptables -A FORWARD -j DROP && '
                   'unshare --net --pid --fork --mount-proc true')
        tried = None if missing else subprocess.run([*own, 'sh', '-c', attempt], capture_output=True, text=True)
        if missing or tried.returncode:
            return 'there is no ' + ', '.join(missing) if missing else 'no namespaces: ' + ' '.join(tried.stderr.split())
        os.execvpe(own[0], [*own, sys.executable, *sys.argv], os.environ | {'STRATA_ROUTER': '1'})
    run('ip', 'link', 'set', 'lo', 'up')
    with open('/proc/sys/net/ipv4/ip_forward', 'w') as forward:
        forward.write('1')
    return None


def run(*command):
    subprocess.run(list(map(str, command)), check=True)


class host:
    """A host. Its first process sleeps; when that one ends, the system ends all others."""
    def __init__(self, index):
        self.address = f'10.77.{index}.2'
        own = ['unshare', '--net', '--pid', '--fork', '--mount-proc', '--kill-child']
        sleep = ['sh', '-c', 'echo; exec sleep infinity']
        self.first = subprocess.Popen([*ENDS_WITH_ME, *own, *sleep], stdout=subprocess.PIPE)
        self.first.stdout.readline()
        self.namespaces = f'/proc/{self.first.pid}/ns'
        self.link = f'host{index}'
        run('ip', 'link', 'add', self.link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self.first.pid)
        run('ip', 'address', 'add', f'10.77.{index}.1/24', 'dev', self.link)
        run('ip', 'link', 'set', self.link, 'up')
        for words in (f'address add {self.address}/24 dev eth0', 'link set eth0 up', 'link set lo up',
                      f'route add default via 10.77.{index}.1'):
            run('nsenter', f'--net={self.namespaces}/net', 'ip', *words.split())

    def within(self, own_processes=True):
        """A command prefix that starts a command on this host; it ends with its parent. Its processes are in a process namespace of their
        own, or have the ids and signals of this machine."""
        kinds = {'net': 'net'} | ({'mount': 'mnt', 'pid': 'pid_for_children'} if own_processes else {})
        return ['nsenter', *(f'--{option}={self.namespaces}/{file}' for option, file in kinds.items()), *ENDS_WITH_ME]


class rule:
    """A rule of iptables, during a with statement."""
    def __init__(self, words):
        self.words = words.split()

    def __enter__(self):
        run('iptables', '--table', *self.words[:1], '--append', *self.words[1:])
        return self

    def packets(self):
        """The number of packets that matched the first rule of its chain."""
        table, chain = self.words[:2]
        command = ['iptables', '--table', table, '--list', chain, '1', '--verbose', '--exact']
        out = subprocess.run(command, capture_output=True, text=True, check=True)
        return int(out.stdout.split()[0])

    def __exit__(self, *_):
        run('iptables', '--table', *self.words[:1], '--delete', *self.words[1:])


class rules(contextlib.ExitStack):
    """Several rules, during a with statement."""
    def __init__(self, *words):
        super().__init__()
        self.words = words

    def __enter__(self):
        for w in self.words:
            self.enter_context(rule(w))
        return self


# A proxy runs on this host, so its traffic is not forwarded by the kernel.
def nothing_from(place):
    return rules(*(f'filter {chain} --in-interface {place.link} --jump DROP' for chain in ('FORWARD', 'INPUT')))


def nothing_to(place):
    return rules(*(f'filter {chain} --out-interface {place.link} --jump DROP' for chain in ('FORWARD', 'OUTPUT')))


class proxy:
    """A proxy for all connections between hosts to some ports, during a with statement. It delays data by seconds in each
    direction; it can cut the connections, or silently stop forwarding."""
    ORIGINAL_DESTINATION = 80  # SO_ORIGINAL_DST

    def __init__(self, ports, delay=0.0):
        self.delay, self.sockets, self.carried = delay, [], 0
        self.carries = threading.Event()
        self.carries.set()
        self.listener = socket.create_server(('0.0.0.0', 0), backlog=100)
        own_port = self.listener.getsockname()[1]
        self.redirection = rule(f'nat PREROUTING --protocol tcp {ports} --jump REDIRECT --to-ports {own_port}')

    def __enter__(self):
        self.redirection.__enter__()
        self.acceptor = threading.Thread(target=self.accept, daemon=True)
        self.acceptor.start()
        return self

    def __exit__(self, *_):
        self.redirection.__exit__()
        self.listener.shutdown(socket.SHUT_RDWR)  # wakes the thread, which might take what comes to the next one's listener
        self.acceptor.join()
        self.listener.close()
        self.cut()
        self.carries.set()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def carry(self, near):
        try:
            port, address = struct.unpack('!2xH4s8x', near.getsockopt(socket.SOL_IP, self.ORIGINAL_DESTINATION, 16))
            far = socket.create_connection((socket.inet_ntoa(address), port), 5)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        for s in (near, far):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sockets += [near, far]
        for a, b in ((near, far), (far, near)):
            waiting = queue.SimpleQueue()
            threading.Thread(target=self.take, args=(a, waiting), daemon=True).start()
            threading.Thread(target=self.give, args=(b, waiting), daemon=True).start()

    def take(self, source, waiting):
        data = True
        while data:
            try:
                data = source.recv(1 << 16)
            except OSError:
                data = b''
            waiting.put((time.monotonic() + self.delay, data))

    def give(self, to, waiting):
        data = True
        while data:
            due, data = waiting.get()
            time.sleep(max(0, due - time.monotonic()))
            self.carries.wait()
            self.carried += len(data)
            try:
                to.sendall(data) if data else to.shutdown(socket.SHUT_WR)
            except OSError:
                return

    def cut(self):
        """Resets all connections, as a device on the way would that has lost its state: both ends are notified at once."""
        for s in self.sockets:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                s.shutdown(socket.SHUT_RDWR)
                s.close()
            except OSError:
                pass
        self.sockets.clear()
