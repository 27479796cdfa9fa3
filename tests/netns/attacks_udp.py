"""Programs of attacks_udp.sh. Those that test something print what they saw, and end with an error if the attack succeeded.

    target LOG ADDRESS PORT...          answers each datagram with itself, some of them late, and logs it. If it is "crowd", every other
                                        target of the family sends its own name to the sender, too.
    reach LOG ADDRESS PORT...           sends a datagram to each of these without a proxy: the targets must see it
    good PROXY HOST PORT SECONDS        echoes datagrams, which must arrive
    senders PROXY HOST PORT LOG         others than the program that owns an association send to its relay
    forbidden PROXY PORT LOG ALLOWED... sends to forbidden addresses and names, and to allowed ones
    crowd PROXY HOST PORT NAME...       the targets that answer an association that contacted one must be these
    malformed PROXY HOST PORT LOG       fragments, headers that are cut or invalid, the largest datagrams
    table PROXY HOST PORT VOID LIMIT    a target may not answer after so many others; VOID is a host that does not answer
    refused FORWARD LOG                 a forward to a forbidden target must refuse
    closing PROXY HOST PORT             the end of the TCP connection must close the relay
    associations COUNT HOST PORT PROXY...   as many associations as possible, at each proxy; COUNT is what all of them may have
    names PROXY... / targets PROXY HOST / churn PROXY HOST PORT / upstream PROXY HOST PORT / downstream PROXY HOST PORT
                                        floods of one kind, until SIGTERM
    flooder ADDRESS PORT                answers one datagram with a flood
    middle LISTEN SERVER CAPTURE        forwards a connection; records its packets and, from SIGUSR1 on, repeats them
    packets SERVER CAPTURE SECONDS      random and recorded packets from strange addresses; counts what comes back
"""

import ipaddress, os, random, resource, select, signal, socket, struct, sys, time

NAME, TARGETS_OF_FLOOD, NAMES_OF_FLOOD, RATE_OF_FLOOD = 3, 5000, 12, 10_000
PATIENCE = 1.0  # seconds, within which a datagram is in time
LATE = 1.5  # seconds until the answer to a datagram that begins with "late"
AMPLIFICATION = 3  # bytes to an unproven address for each byte from it


def place(text):
    host, port = text.rsplit(":", 1)
    return host.strip("[]"), int(port)


def datagram_socket(address=None, port=0):
    made = socket.socket(socket.AF_INET6 if ":" in (address or "") else socket.AF_INET, socket.SOCK_DGRAM)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        made.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
    if address:
        made.bind((address, port))
    return made


def address_field(host, port):
    """The address of a SOCKS5 datagram: an address of either family, or a name. `=` in front of an address makes it a name."""
    try:
        packed = ipaddress.ip_address(host).packed
        return bytes([1 if len(packed) == 4 else 4]) + packed + struct.pack(">H", port)
    except ValueError:
        name = host.removeprefix("=").encode()
        return bytes([NAME, len(name)]) + name + struct.pack(">H", port)


def ask(proxy, declared=0, source="127.0.0.1"):
    """Sends the whole request for an association, and returns its connection."""
    connection = socket.create_connection(proxy, 10, (source, 0))
    connection.sendall(b"\x05\x01\x00\x05\x03\x00\x01\0\0\0\0" + struct.pack(">H", declared))
    return connection


def reply(connection):
    """The address of the relay, or None if the association is refused."""
    answer, bytes_of_reply = b"", 2 + 10
    while len(answer) < bytes_of_reply:
        more = connection.recv(bytes_of_reply - len(answer))
        if not more:
            return None
        answer += more
    if answer[3] != 0:
        return None
    return socket.inet_ntoa(answer[6:10]), int.from_bytes(answer[10:12], "big")


class Association:
    def __init__(self, proxy, is_declared=False, source="127.0.0.1"):
        self.socket = datagram_socket(source)
        self.control = ask(proxy, self.socket.getsockname()[1] if is_declared else 0, source)
        self.relay = reply(self.control) or sys.exit("the association is refused")

    def send(self, host, port, data):
        self.socket.sendto(b"\0\0\0" + address_field(host, port) + data, self.relay)

    def answers(self, seconds):
        """What arrives within this time, without its header."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                return
            answer = self.socket.recv(65536)
            yield answer[22 if answer[3] == 4 else 10 :]

    def echo(self, host, port, data, tries=4):
        for _ in range(tries):
            self.send(host, port, data)
            if data in self.answers(PATIENCE):
                return True
        return False


def token(name):
    return f"{name}/{random.randrange(1 << 48):x}".encode()


def seen(log, data):
    with open(log) as lines:
        return sum(line.endswith(f" {data.decode()}\n") for line in lines)


def must(condition, text):
    if not condition:
        sys.exit(text)


# ---- targets and good programs


def target(log, *places):
    sockets, late = {}, []
    for address, port in zip(places[::2], map(int, places[1::2])):
        sockets[datagram_socket(address, port)] = f"{address} {port}"
    with open(log, "a", 1) as lines:
        while True:
            for ready in select.select(list(sockets), [], [], 0.1)[0]:
                data, source = ready.recvfrom(65536)
                lines.write(f"{sockets[ready]} from {source[0]} {source[1]}: {data[:60].decode('ascii', 'replace')}\n")
                for other in sockets if data == b"crowd" else ():
                    if other is not ready and other.family == ready.family:
                        other.sendto(sockets[other].encode(), source)
                late.append((time.monotonic() + (LATE if data.startswith(b"late") else 0), ready, data, source))
            while late and late[0][0] <= time.monotonic():
                _, ready, data, source = late.pop(0)
                ready.sendto(data, source)


def reach(log, *places):
    for address, port in zip(places[::2], map(int, places[1::2])):
        data = token("reach")
        datagram_socket("::" if ":" in address else "0.0.0.0").sendto(data, (address, port))
        end = time.monotonic() + 5
        while not seen(log, data):
            must(time.monotonic() < end, f"{address} {port} sees nothing")
            time.sleep(0.02)


def good(proxy, host, port, seconds):
    """Fifty datagrams a second; 95 of 100 must come back in time, and none twice."""
    association, port = Association(place(proxy)), int(port)
    must(association.echo(host, port, token("first"), 8), "nothing comes back at all")
    sent, taken, count, again = {}, [], int(float(seconds) * 50), 0

    def receive(seconds):
        nonlocal again
        for answer in association.answers(seconds):
            if answer in sent:
                taken.append(time.monotonic() - sent.pop(answer))
            else:
                again += not answer.startswith(b"first")

    begin = time.monotonic()
    for number in range(count):
        data = token(number)
        sent[data] = time.monotonic()
        association.send(host, port, data)
        receive(begin + (number + 1) / 50 - time.monotonic())
    end = time.monotonic() + PATIENCE
    while sent and time.monotonic() < end:
        receive(0.05)
    taken = sorted(passed for passed in taken if passed < PATIENCE)
    middle, late = (taken[len(taken) * part // 100] * 1000 if taken else 0 for part in (50, 95))
    print(f"the good client: {len(taken)} of {count} in time, {again} twice, median {middle:.0f} ms, p95 {late:.0f} ms")
    sys.exit(len(taken) < count * 0.95 or again > 0)


# ---- attacks on the association


def senders(proxy, host, port, log):
    proxy, port = place(proxy), int(port)

    def spoof(association, source):
        stranger, data = datagram_socket(source), token("stranger")
        for _ in range(20):
            stranger.sendto(b"\0\0\0" + address_field(host, port) + data, association.relay)
        return stranger, data

    def refused(name, association, sources):
        strangers = [spoof(association, source) for source in sources]
        must(association.echo(host, port, token("owner")), f"{name}: the owner gets no answer")
        for stranger, data in strangers:
            must(not seen(log, data), f"{name}: a datagram from {stranger.getsockname()} was forwarded")
            must(not select.select([stranger], [], [], 0)[0], f"{name}: {stranger.getsockname()} got an answer")

    # The strangers precede the owner, who has not sent anything yet: only another address is refused.
    refused("a new association", Association(proxy), ["127.0.0.2", "127.9.9.9"])
    refused("a declared port", Association(proxy, is_declared=True), ["127.0.0.1", "127.0.0.2"])
    used = Association(proxy)
    must(used.echo(host, port, token("owner")), "no answer")
    refused("a used association", used, ["127.0.0.1", "127.0.0.2"])
    other = Association(proxy, source="127.0.0.2")
    must(other.echo(host, port, token("other")), "no answer to another association")
    refused("the owner of another association", used, ["127.0.0.2"])


def forbidden(proxy, port, log, *allowed):
    port = int(port)
    hosts = ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0", "::", "10.99.0.1", "::ffff:10.99.0.1",
             "169.254.169.254", "::ffff:169.254.169.254", "2002:7f00:1::1", "fd99::1", "localhost", "LOCALHOST", "inside.test", "mapped.test",
             "private.test", "metadata.test", "=127.0.0.1", "=::1", "=::ffff:127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1"]
    association, sent = Association(place(proxy)), {}
    for host in hosts:
        sent[host] = token("forbidden")
    own = token("forbidden")
    for _ in range(3):
        for host, data in sent.items():
            association.send(host, port, data)
        association.send(allowed[0], port + 2, own)  # the server's address, but not the port that is allowed
        list(association.answers(0.3))
    for host in allowed:
        must(association.echo(host, port, token("allowed")), f"{host} is allowed and silent")
    must(all("/" not in str(answer) for answer in association.answers(0.5)), "an answer came")
    for host, data in [*sent.items(), (f"{allowed[0]}:{port + 2}", own)]:
        must(not seen(log, data), f"a datagram to {host} arrived")
    print(f"{3 * (len(hosts) + 1)} datagrams to {len(hosts) + 1} forbidden targets")


def crowd(proxy, host, port, *expected):
    association = Association(place(proxy))
    must(association.echo(host, int(port), token("first")), "no answer")
    answers = set()
    for _ in range(3):
        association.send(host, int(port), b"crowd")
        answers |= {answer.decode() for answer in association.answers(0.5)}
    print(f"answers: {sorted(answers)}")
    must(answers == {"crowd", *expected}, "these are not those expected")


def malformed(proxy, host, port, log):
    port = int(port)
    where, data = address_field(host, port), token("malformed")
    zero = address_field(host, 0)
    whole = b"\0\0\0" + where + data
    cut = [whole[:length] for length in range(3 + len(where))]
    fragments = [b"\0\0" + bytes([fragment]) + where + data for fragment in (1, 2, 127, 128, 255)]
    fields = [b"\x03\x00" + struct.pack(">H", port), zero, address_field("echo.test", 0), b"\x00" + where[1:], b"\x02" + where[1:], b"\x05" + where[1:],
              b"\xff" + where[1:], b"\x03\xff" + b"a" * 200, b"\x03\x02\xff\xfe" + where[-2:], b"\x03\x03a\0b" + where[-2:], b"\x03\x03a b" + where[-2:],
              b"\x03\x01." + where[-2:], b"\x03\x40" + b"a" * 64 + where[-2:], b"\x04" + where[1:]]
    noise = [os.urandom(random.randrange(1, 300)) for _ in range(200)]
    association = Association(place(proxy))
    must(association.echo(host, port, token("good")), "no answer before")
    for bad in [*cut, *fragments, *(b"\0\0\0" + field + data for field in fields), *noise, b"\0\0\0" + bytes([NAME]) + os.urandom(65000)]:
        association.socket.sendto(bad, association.relay)
        time.sleep(0.001)
    must(association.echo(host, port, token("good")), "no answer after malformed datagrams")
    must(not seen(log, data), f"{seen(log, data)} malformed datagrams were forwarded")
    largest = 65507 - 3 - len(where)
    for size in (largest, largest - 1, 0, 1):
        big = bytes(at % 251 for at in range(size))
        must(association.echo(host, port, big), f"no answer to {size} bytes")
    for _ in range(500):
        association.send(host, port, bytes(largest))
    time.sleep(1)
    must(association.echo(host, port, token("good"), 10), "no answer after many large datagrams")
    print(f"{len(cut)} cut, {len(fragments)} fragments, {len(fields)} invalid, {len(noise)} random, and 500 of {largest} bytes")


def table(proxy, host, port, void, limit):
    for others, is_known in ((int(limit) - 1, True), (int(limit), False)):
        association, data = Association(place(proxy)), token("late")
        must(association.echo(host, int(port), token("first")), "no answer")
        association.send(host, int(port), data)
        for other in range(others):
            association.send(void, 10000 + other, b"x")
            time.sleep(0.001)
        got = data in association.answers(LATE + PATIENCE)
        print(f"{others} targets later the first one {'is heard' if got else 'is not heard'}")
        must(got == is_known, "that is wrong")


def refused(forward, log):
    program, data = datagram_socket("127.0.0.1"), token("forward")
    program.connect(place(forward))
    end = time.monotonic() + 3
    while time.monotonic() < end:
        try:
            program.send(data)
        except ConnectionRefusedError:
            return must(not seen(log, data), "the forbidden target was reached")
        time.sleep(0.02)
    sys.exit("it is not refused")


def closing(proxy, host, port):
    for is_reset in (False, True):
        association = Association(place(proxy))
        must(association.echo(host, int(port), token("open")), "no answer")
        if is_reset:
            association.control.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        begin = time.monotonic()
        association.control.close()
        association.socket.connect(association.relay)
        while True:
            passed = time.monotonic() - begin
            must(passed < 2, f"the relay is open after {passed:.1f} s")
            try:
                association.socket.send(b"\0\0\0" + address_field(host, int(port)) + b"late")
                time.sleep(0.005)
                association.socket.send(b"")
            except ConnectionRefusedError:
                break
        print(f"closed {'by RST' if is_reset else 'by FIN'}: the relay is gone after {passed * 1000:.0f} ms")


# ---- floods


def open_many(count, proxies):
    """Asks for `count` associations at each proxy at once. Returns those that were granted."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    connections = [ask(proxy) for _ in range(count) for proxy in proxies]
    return [(relay, connection) for connection in connections if (relay := reply(connection))], len(connections)


def associations(limit, host, port, *proxies):
    """Stays until SIGTERM, and sends a datagram through each association all the time."""
    limit, port = int(limit), int(port)
    granted, asked = open_many(1000, [place(proxy) for proxy in proxies])
    print(f"{len(granted)} of {asked} associations granted", flush=True)
    out = datagram_socket("127.0.0.1")
    while True:
        must(len(granted) <= limit, "more than the limit")
        for relay, _ in granted:
            out.sendto(b"\0\0\0" + address_field(host, port) + token("association"), relay)
        time.sleep(0.2)


def names(*proxies):
    """Names about which the resolver says nothing, and more datagrams for them than may wait, in as many associations as possible."""
    granted, _ = open_many(300, [place(proxy) for proxy in proxies])
    print(f"{NAMES_OF_FLOOD} names in each of {len(granted)} associations", flush=True)
    out, data = datagram_socket("127.0.0.1"), bytes(8000)
    while True:
        for index, (relay, _) in enumerate(granted):
            for number in range(NAMES_OF_FLOOD):
                out.sendto(b"\0\0\0" + address_field(f"n{number}.a{index}.slow.test", 53) + data, relay)
                time.sleep(0.0002)


def targets(proxy, host):
    association, port = Association(place(proxy)), 10000
    print(f"{TARGETS_OF_FLOOD} targets of an association", flush=True)
    while True:
        for port in range(10000, 10000 + TARGETS_OF_FLOOD):
            association.send(host, port, b"x")
            time.sleep(0.0001)


def churn(proxy, host, port):
    """Associations that are used once and closed."""
    proxy, count, out, begin = place(proxy), 0, datagram_socket("127.0.0.1"), time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(f"{count / (time.monotonic() - begin):.0f} associations a second")))
    while True:
        connections = [ask(proxy) for _ in range(50)]
        for connection in connections:
            if relay := reply(connection):
                out.sendto(b"\0\0\0" + address_field(host, int(port)) + b"x", relay)
                count += 1
            connection.close()


def upstream(proxy, host, port):
    association, sent, begin = Association(place(proxy)), 0, time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(f"{sent / (time.monotonic() - begin):.0f} datagrams a second")))
    head = b"\0\0\0" + address_field(host, int(port))
    while True:
        while sent < (time.monotonic() - begin) * RATE_OF_FLOOD:  # a loop without pauses would take a core from the good client
            association.socket.sendto(head + bytes(random.choice((1, 100, 1200))), association.relay)
            sent += 1
        time.sleep(0.001)


def downstream(proxy, host, port):
    """Asks the target of `flooder` for its flood."""
    association = Association(place(proxy))
    while True:
        association.send(host, int(port), b"flood")
        list(association.answers(0.2))


def flooder(address, port):
    """Answers one datagram with a flood of 4 s, from its own port and from another one."""
    contacted, other = datagram_socket(address, int(port)), datagram_socket(address)
    _, source = contacted.recvfrom(100)
    begin, sent, small, large = time.monotonic(), 0, bytes(100), bytes(60000)
    while time.monotonic() < begin + 4:
        for _ in range(50):
            contacted.sendto(small, source)
            contacted.sendto(large, source)
            other.sendto(small, source)
            sent += 3
        time.sleep(0.0005)  # lets the server empty its socket
    print(f"{sent / 4:.0f} answers a second, {sent / 3 / 4 * 60000 / 1e6:.0f} MB a second", flush=True)


# ---- packets of the protocol


def middle(listen, server, capture):
    """What the client sends arrives from one address. After SIGUSR1 each packet is followed by a copy, by an older one and by garbage from
    the same address, in both directions; and those of the client are overtaken by a copy from the address of a stranger."""
    inside, outside, stranger = datagram_socket(*place(listen)), datagram_socket(), datagram_socket()
    outside.connect(place(server))
    stranger.connect(place(server))
    client, running, is_attacking, carried, old = None, True, False, 0, {True: [], False: []}
    traffic = [0, 0]

    def on_signal(number, _):
        nonlocal running, is_attacking
        running, is_attacking = number != signal.SIGTERM, True

    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    with open(capture, "ab", 0) as file:
        while running:
            for ready in select.select([inside, outside, stranger], [], [], 0.2)[0]:
                try:
                    packet, source = ready.recvfrom(65536)
                except ConnectionRefusedError:
                    continue
                if ready is stranger:
                    traffic[1] += len(packet)
                    continue
                is_up = ready is inside
                client = source if is_up else client
                send = outside.send if is_up else lambda packet: inside.sendto(packet, client)
                if is_up and is_attacking:
                    traffic[0] += stranger.send(packet)
                send(packet)
                if is_attacking:
                    older = random.choice(old[is_up] or [packet])
                    for bad in (packet, older, os.urandom(random.randrange(1, 1400)), packet[:20] + os.urandom(len(packet))):
                        send(bad)
                carried += 1
                old[is_up] = (old[is_up] + [packet])[-500:]
                if is_up and file.tell() < 4 << 20:
                    file.write(struct.pack(">H", len(packet)) + packet)
    ratio = traffic[1] / max(traffic[0], 1)
    print(f"{carried} packets carried; overtaking: {traffic[0]} bytes sent, {traffic[1]} came back, ratio {ratio:.2f}", flush=True)
    sys.exit(ratio > AMPLIFICATION)


def recorded(capture):
    with open(capture, "rb") as file:
        data, packets, at = file.read(), [], 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "big")
        packets.append(data[at + 2 : at + 2 + size])
        at += 2 + size
    return packets


def packets(server, capture, seconds):
    noise, end = os.urandom(1 << 20), time.monotonic() + float(seconds)
    genuine = recorded(capture)
    long_ones = [packet for packet in genuine if packet[0] & 0x80] or sys.exit("the handshake was not recorded")
    short_ones = [packet for packet in genuine if not packet[0] & 0x80] or sys.exit("no packet was recorded")

    def random_bytes():
        begin = random.randrange(len(noise) - 1500)
        return noise[begin : begin + random.choice((1, 20, 21, 40, 100, 1200, 1472, random.randrange(1, 1472)))]

    def damaged():
        packet = bytearray(random.choice(genuine))
        packet[random.randrange(len(packet))] ^= 1 << random.randrange(8)
        return bytes(packet)

    shapes = {
        "random": random_bytes,
        "replayed first packets": lambda: random.choice(long_ones),
        "replayed packets": lambda: random.choice(short_ones),
        "damaged packets": damaged,
        "genuine heads": lambda: random.choice(genuine)[:21] + random_bytes(),
        "cut packets": lambda: (packet := random.choice(genuine))[: random.randrange(1, len(packet) + 1)],
    }
    outs, counts, worst = {}, {name: [0, 0, 0] for name in shapes}, 0
    for name in shapes:
        outs[name] = datagram_socket("0.0.0.0")
        outs[name].connect(place(server))
        outs[name].setblocking(False)

    def receive(name):
        try:
            while True:
                counts[name][2] += len(outs[name].recv(65536))
        except (BlockingIOError, ConnectionRefusedError):
            pass

    while time.monotonic() < end:
        for name, shape in shapes.items():
            for _ in range(10):
                try:
                    counts[name][1] += outs[name].send(shape())
                    counts[name][0] += 1
                except (BlockingIOError, ConnectionRefusedError):
                    pass
            receive(name)
        time.sleep(0.002)
    time.sleep(1)  # for late answers
    for name in shapes:
        receive(name)
        count, sent, back = counts[name]
        print(f"{name}: {count} packets, {sent} bytes; {back} came back, ratio {back / sent:.3f}")
        worst = max(worst, back / sent)
    sys.exit(worst > AMPLIFICATION)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
