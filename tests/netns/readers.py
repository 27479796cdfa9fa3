"""Transfers whose reader stops, and one that is timed beside them.

    readers.py serve ADDRESS PORT                 the other end: what it does, the first byte of a connection says
    readers.py download|upload ADDRESS PORT       through the SOCKS proxy

It ends with 1 if the median of a new transfer takes more than 1.2 times what it took before the readers stopped.
"""

import socket, statistics, struct, sys, threading, time

what, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
PROXY = ("127.0.0.1", 1080)
READERS, TIMES, SIZE, BOUND, PATIENCE = 100, 9, 1_000_000, 1.2, 20
BLOCK = bytes(1 << 16)
# First bytes: send SIZE and end; take SIZE and say so; send for ever; never read.
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


def through_proxy():
    opened = socket.socket()
    opened.settimeout(PATIENCE)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    opened.connect(PROXY)
    opened.sendall(b"\x05\x01\x00" + b"\x05\x01\x00\x01" + socket.inet_aton(address) + struct.pack(">H", port))
    for length in (2, 10):
        while length:
            length -= len(opened.recv(length))
    return opened


def timed():
    """Milliseconds that a transfer takes from the connection to the proxy to the last byte."""
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


def stop_readers():
    """Those that never read, and how much their writers could write until all of them stopped."""
    stopped = []
    for _ in range(READERS):
        connection = through_proxy()
        connection.sendall(ENDLESS if what == "download" else DEAF)
        connection.setblocking(False)
        stopped.append(connection)
    return stopped


def bytes_on_wire():
    with open("/sys/class/net/wire/statistics/rx_bytes") as received, open("/sys/class/net/wire/statistics/tx_bytes") as sent:
        return int(received.read()) + int(sent.read())


def until_quiet(stopped):
    """Uploads write until nobody takes more. Then the link is quiet for two seconds."""
    last, since, end = bytes_on_wire(), time.monotonic(), time.monotonic() + 120
    while time.monotonic() - since < 2 and time.monotonic() < end:
        if what == "upload":
            for connection in stopped:
                try:
                    connection.send(BLOCK)
                except BlockingIOError:
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

for _ in range(5):  # the path is measured and windows grow
    timed()
usual = [timed() for _ in range(TIMES)]
before = bytes_on_wire()
stopped = stop_readers()
moved = until_quiet(stopped) - before
beside = []
for _ in range(TIMES):
    beside.append(timed())
    if beside[-2:] == [float("inf")] * 2:
        break  # the others would wait in vain, too
usual, beside = statistics.median(usual), statistics.median(beside)
print(f"{what}: {usual:.0f} ms usually, {beside:.0f} ms beside {READERS} readers that stopped after {moved / 1e6:.0f} MB in all")
sys.exit(beside > BOUND * usual)
