"""Transfers whose readers stop, and one transfer that is timed alongside them.

    readers.py serve ADDRESS PORT                 the other end; the first byte of a connection selects its behaviour
    readers.py download|upload ADDRESS PORT       through the SOCKS proxy
    readers.py fill ADDRESS PORT SERVER_PID PROXY_PORT...    unread uploads through several proxies, and the server's memory

It exits with 1 if the median of a new transfer takes more than 1.2 times as long as before the readers stopped, or if the server uses
more memory than its clients' key may have.
"""

import socket, statistics, struct, sys, threading, time

what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
READERS, TIMES, SIZE, BOUND, PATIENCE = 100, 9, 1_000_000, 1.2, 20
# A ninth of the 1 GiB that a server's connections share, plus the rest of the process.
MEGABYTES_MAX = 160
BLOCK = bytes(1 << 16)
# First bytes: send SIZE and close; receive SIZE and confirm; send forever; never read.
DOWNLOAD, UPLOAD, ENDLESS, DEAF = b"d", b"u", b"e", b"n"


def serve(connection):
    kind = connection.recv(1)
    try:
        if kind == DOWNLOAD:
            connection.sendall(bytes(SIZE))
        elif kind == UPLOAD:
            got = 0
            while got < SIZE and (block := connection.recv(1 << 16)):
                got += len(block)
            connection.sendall(b"!")
        elif kind == ENDLESS:
            while True:
                connection.sendall(BLOCK)
        else:
            threading.Event().wait()
    except OSError:
        pass
    connection.close()


def through_proxy(proxy_port=1080, patience=PATIENCE):
    opened = socket.socket()
    opened.settimeout(patience)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    opened.connect(("127.0.0.1", proxy_port))
    opened.sendall(b"\x05\x01\x00" + b"\x05\x01\x00\x01" + socket.inet_aton(address) + struct.pack(">H", port))
    for length in (2, 10):
        while length:
            if not (got := opened.recv(length)):
                raise ConnectionError("closed by the proxy")
            length -= len(got)
    return opened


def timed():
    """The milliseconds from the connection to the proxy to the last byte of a transfer."""
    begin = time.monotonic()
    try:
        with through_proxy() as connection:
            if what == "download":
                connection.sendall(DOWNLOAD)
                got = 0
                while got < SIZE and (block := connection.recv(1 << 16)):
                    got += len(block)
            else:
                connection.sendall(UPLOAD + bytes(SIZE))
                connection.recv(1)
    except OSError:
        return float("inf")
    return (time.monotonic() - begin) * 1000


def stop_readers(proxy_port=1080, patience=PATIENCE):
    """Opens as many connections as possible that are never read."""
    stopped = []
    for _ in range(READERS):
        try:
            connection = through_proxy(proxy_port, patience)
        except OSError:
            break
        connection.sendall(ENDLESS if what == "download" else DEAF)
        connection.setblocking(False)
        stopped.append(connection)
    return stopped


def bytes_on_wire():
    with open("/sys/class/net/path1/statistics/rx_bytes") as received, open("/sys/class/net/path1/statistics/tx_bytes") as sent:
        return int(received.read()) + int(sent.read())


def until_quiet(stopped):
    """Writes to the uploads until no more is accepted and the link has been quiet for two seconds."""
    last, since, end = bytes_on_wire(), time.monotonic(), time.monotonic() + 120
    while time.monotonic() - since < 2 and time.monotonic() < end:
        if what != "download":
            for connection in stopped:
                try:
                    connection.send(BLOCK)
                except OSError:  # it would block, or was refused
                    pass
        time.sleep(0.05)
        now = bytes_on_wire()
        if now - last > 20_000:
            since = time.monotonic()
        last = now
    return last


if what == "serve":
    listener = socket.create_server((address, port), backlog=200)
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

if what == "fill":
    server_pid, *proxies = sys.argv[4:]
    stopped = []
    # A server short of memory lets a client open few streams; the next one waits until the time-out.
    openers = [threading.Thread(target=lambda port=int(port): stopped.extend(stop_readers(port, 3))) for port in proxies]
    for opener in openers:
        opener.start()
    for opener in openers:
        opener.join()
    until_quiet(stopped)
    with open(f"/proc/{server_pid}/status") as status:
        megabytes = next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
    print(f"{len(proxies)} clients, {len(stopped)} unread uploads: {megabytes:.0f} MB resident at the server")
    sys.exit(megabytes > MEGABYTES_MAX)

for _ in range(5):  # lets the transport measure the path and grow its windows
    timed()
usual = [timed() for _ in range(TIMES)]
before = bytes_on_wire()
stopped = stop_readers()
moved = until_quiet(stopped) - before
beside = []
for _ in range(TIMES):
    beside.append(timed())
    if beside[-2:] == [float("inf")] * 2:
        break  # the others would time out too
usual, beside = statistics.median(usual), statistics.median(beside)
if beside > BOUND * usual:
    # The machine may have become slower meanwhile. The same transfers without the readers tell.
    for connection in stopped:
        connection.close()
    time.sleep(1)
    usual = max(usual, statistics.median([timed() for _ in range(TIMES)]))
took = f"{beside:.0f} ms" if beside < float("inf") else f"more than {PATIENCE} s"
print(f"{what}: {usual:.0f} ms before, {took} alongside {len(stopped)} readers that stopped after {moved / 1e6:.0f} MB in all")
sys.exit(beside == float("inf") or beside > BOUND * usual or len(stopped) < READERS)
