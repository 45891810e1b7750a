"""Hostile input for the ports of a training, and certificates that are not signed, or signed by another authority.

strangers.py HOST PORT KIND COUNT SOURCE keeps COUNT connections open until it is ended; closed ones are reopened. SOURCE is their source
address."""
import errno, os, random, re, resource, selectors, socket, ssl, struct, subprocess, sys, time
from workers import check


def memory_of(process):
    """The memory of a process in MB."""
    with open(f'/proc/{process.pid}/status') as status:
        return int(re.search(r'VmRSS:\s*(\d+) kB', status.read())[1]) / 1024


GREETING = b'strata 1'
REQUEST, ANSWER, CANCEL, PING, PONG = 1, 2, 3, 4, 5


def frame(kind, call=1, method=b'', content=b'', announced=None):
    """include/strata/net/message_link.hpp"""
    size = len(method) + len(content) if announced is None else announced
    return struct.pack('<QIBBBB', size, call, kind, 0, len(method), 0) + method + content


def message(method, body, announced=None):
    """The bytes of a call, incomplete if it announces more than it has."""
    return GREETING + frame(REQUEST, 1, method, body, announced)


def to_any_server(r):
    kind = r.randrange(5)
    if kind == 0:
        return r.randbytes(r.randrange(1, 5000))
    if kind == 1:
        return GREETING + r.randbytes(r.randrange(1, 5000))
    if kind == 2:
        return GREETING[:r.randrange(len(GREETING))]
    if kind == 3:  # kinds that only servers send, and none
        return GREETING + frame(r.choice([0, ANSWER, 6, 255]), 1, b'', r.randbytes(100))
    # announces what no memory has
    return GREETING + frame(REQUEST, 1, b'/strata', r.randbytes(5000), announced=r.choice([2**31, 2**40, 2**64 - 1]))


def varint(n):
    n &= 2**64 - 1
    out = b''
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    """A signed integer, as protobuf's sint64."""
    return varint(field << 3) + varint(n << 1 ^ n >> 63)


def fixed64(field, n):
    return varint(field << 3 | 1) + struct.pack('<Q', n % 2**64)


def fixed32(field, n):
    return varint(field << 3 | 5) + struct.pack('<I', n % 2**32)


def text(field, t):
    return varint(field << 3 | 2) + varint(len(t)) + t


def envelope(run, generation, rank, incarnation, body, elements=b''):
    """The message of include/strata/net/envelope.hpp."""
    sender = text(1, run) + fixed64(2, generation) + number(3, rank) + fixed64(4, incarnation)
    return text(1, sender) + text(2, body) + (text(3, elements) if elements else b'')


def to_coordinator(r):
    """Random bytes of many kinds for a coordinator."""

    def call(method, body, rank=-1, run=b''):
        return message(b'/strata.Coordinator/' + method, envelope(run, 0, rank, r.getrandbits(64), body))

    kind = r.randrange(11)
    if kind < 4:
        return to_any_server(r)
    if kind == 4:  # a value longer than allowed, cut off
        return call(b'Set', text(1, b'k') + text(2, r.randbytes(15000)))[:-5000] + r.randbytes(100)
    if kind == 5:  # absurd keys
        return call(b'Set', text(1, b'k' * r.choice([0, 257, 3000])) + text(2, b'value'))
    if kind == 6:  # fills the store
        return call(b'Set', text(1, b'%x' % r.getrandbits(64)) + text(2, r.randbytes(16000)))
    if kind == 7:  # from a process that is no member
        method = r.choice([b'Join', b'Enter', b'Beat', b'Fail', b'Leave', b'Get', b'GetAll', b'FormAgain', b'Nothing'])
        who = number(1, r.choice([-1, 3, 2**40])) + text(2, b'worker 1') + text(3, b'host') + number(4, 5) + text(5, r.randbytes(2000))
        body = r.choice([r.randbytes(100), text(1, who) + number(2, 99999999), number(1, -5) + number(2, 2**62), text(1, b'k') * 1000])
        return call(method, body, r.randrange(-2, 5))
    if kind == 8:  # waits for a key that is never set
        return call(b'Get', text(1, r.randbytes(4).hex().encode()))
    if kind == 9:  # damaged
        whole = bytearray(envelope(b'', 0, 1, 7, text(1, b'key') + text(2, b'value')))
        whole[r.randrange(len(whole))] ^= 1 << r.randrange(8)
        return message(b'/strata.Coordinator/' + r.choice([b'Set', b'Get', b'GetAll', b'Join', b'Beat']), bytes(whole[:r.randrange(1, len(whole) + 1)]))
    return call(b'Set', text(1, b'k') + text(2, b'v'), run=r.randbytes(30).hex().encode()) + frame(CANCEL) * 50


def to_parameter_server(run):
    """Random bytes of many kinds for a parameter server, with the name of the run, but without the identity of a process in it."""

    def hostile_bytes(r):
        kind = r.randrange(9)
        if kind < 4:
            return to_any_server(r)
        method = r.choice([b'Join', b'Leave', b'Assign', b'Push', b'Pull', b'Nothing'])
        body = fixed32(1, r.randrange(9)) + number(2, r.getrandbits(40)) + fixed64(3, r.getrandbits(64)) + number(4, r.choice([1, 64, 2**32 - 1])) + number(
            5, r.randrange(-1, 99)) + text(6, r.randbytes(4 * r.randrange(50)))
        whole = envelope(r.choice([run.encode(), b'another']), r.randrange(2), r.randrange(-1, 4), r.getrandbits(64), body, r.randbytes(r.randrange(10000)))
        if kind == 4:  # too short
            return message(b'/strata.Parameters/' + method, whole[:r.randrange(len(whole))])
        if kind == 5:  # begins a message of a megabyte, as pushes are, and leaves it at a part
            return message(b'/strata.Parameters/' + method, whole + bytes(r.randrange(50000)), announced=1 << 20)
        if kind == 6:  # damaged
            damaged = bytearray(whole[:200])
            damaged[r.randrange(len(damaged))] ^= 1 << r.randrange(8)
            return message(b'/strata.Parameters/' + method, bytes(damaged) + whole[200:])
        whole = message(b'/strata.Parameters/' + method, whole)
        return whole if kind == 7 else whole + frame(CANCEL) * 50

    return hostile_bytes


def flood(ports, hostile_bytes, processes, count=10000):
    """Opens `count` connections as fast as possible, 200 of which stay open. Returns the additional memory of the processes in MB."""
    before = [memory_of(p) for p in processes]
    r = random.Random(7)
    connections, grown, began, refused = [], 0, time.monotonic(), 0
    for n in range(1, count + 1):
        c = socket.socket()
        c.settimeout(2)
        try:
            c.connect(('127.0.0.1', r.choice(ports)))
            c.sendall(hostile_bytes(r))
        except OSError:
            refused += 1
        connections.append(c)
        if len(connections) > 200:
            connections.pop(r.randrange(len(connections))).close()
        if n % 250 == 0:
            check(all(p.poll() is None for p in processes), 'ended early: ' + repr([p.communicate()[0][-300:] for p in processes if p.poll() is not None]))
            grown = max([grown] + [memory_of(p) - b for p, b in zip(processes, before)])
    print(f'# {grown:.0f} MB more, {time.monotonic() - began:.1f} s, {refused} refused', flush=True)
    for c in connections:
        c.close()
    return grown


def half_handshake():
    """The first message of a TLS handshake, of a client that accepts any certificate."""
    context, out = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.MemoryBIO()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_bio(ssl.MemoryBIO(), out).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def unfinished_call():
    """A call as long as that of an unidentified connection may be, without its last byte."""
    return message(b'/strata.Coordinator/Get', bytes(70000), announced=70024)


def pings():
    """A megabyte of pings, whose replies are never read."""
    return GREETING + 65536 * frame(PING)


KINDS = {
    'silent': lambda: b'',
    'garbage': lambda: os.urandom(2000),
    'half a handshake': half_handshake,
    'calls that never end': unfinished_call,
    'slow readers': pings,
}


def crowd(host, port, kind, count, source):
    """Opens as many connections as the port accepts. Prints a line once all have been opened."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    says, selector, opened, unread = KINDS[kind](), selectors.DefaultSelector(), 0, []
    while True:
        while len(selector.get_map()) + len(unread) < count:
            s = socket.socket()
            s.setblocking(False)
            s.bind((source, 0))
            if s.connect_ex((host, port)) in (errno.EINPROGRESS, 0):
                selector.register(s, selectors.EVENT_WRITE, [says])
            opened += 1
            if opened == count:
                print('all have been opened', flush=True)
            if opened % 100 == 0:
                break
        for key, _ in selector.select(0.05):
            s, left = key.fileobj, key.data
            try:
                if left[0]:
                    left[0] = left[0][s.send(left[0]):]
                    continue
                if key.events != selectors.EVENT_READ:
                    if kind == 'slow readers':
                        selector.unregister(s)
                        unread.append(s)
                    else:
                        selector.modify(s, selectors.EVENT_READ, left)
                elif not s.recv(1 << 16):
                    raise ConnectionResetError
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(s)
                s.close()
        time.sleep(0.1)  # using up all cores would be another kind of attack


def start_crowd(host, port, kind, count, source='', within=()):
    p = subprocess.Popen([*within, sys.executable, os.path.abspath(__file__), host, str(port), kind, str(count), source], stdout=subprocess.PIPE, text=True)
    return p


def openssl(*arguments):
    subprocess.run(['openssl', *map(str, arguments)], check=True, capture_output=True)


def certificates(folder, authority):
    """A folder with a worker's certificate, signed by an authority of its own."""
    os.makedirs(folder)
    openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', 2, '-subj', f'/CN={authority}',
            '-keyout', f'{folder}/authority.key', '-out', f'{folder}/authority.pem')
    openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=worker', '-keyout', f'{folder}/worker.key',
            '-out', f'{folder}/worker.csr')
    with open(f'{folder}/names', 'w') as names:
        names.write('subjectAltName=IP:127.0.0.1')
    openssl('x509', '-req', '-in', f'{folder}/worker.csr', '-CA', f'{folder}/authority.pem', '-CAkey', f'{folder}/authority.key', '-CAcreateserial',
            '-days', 2, '-extfile', f'{folder}/names', '-out', f'{folder}/worker.pem')


if __name__ == '__main__':
    crowd(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
