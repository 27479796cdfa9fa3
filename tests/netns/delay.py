"""A UDP relay that delays each datagram, because the link between the namespaces has no delay.

    delay.py LISTEN_PORT TARGET_ADDRESS TARGET_PORT ONE_WAY_MILLISECONDS

It listens on 127.0.0.1. Each client has its own socket towards the target. Datagrams are not reordered.
"""

import collections, select, socket, sys, time

listen_port, target, delay = int(sys.argv[1]), (sys.argv[2], int(sys.argv[3])), float(sys.argv[4]) / 1000
IP_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 2  # datagrams that are too large must be lost, as on a real path
LARGE = 4 << 20


def open_socket():
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    opened.setblocking(False)
    opened.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        opened.setsockopt(socket.SOL_SOCKET, option, LARGE)
    return opened


listener = open_socket()
listener.bind(("127.0.0.1", listen_port))
poll = select.epoll()
poll.register(listener, select.EPOLLIN)
upstream, clients = {}, {}  # socket by client's address; client's address by descriptor
held = collections.deque()  # (when, socket, bytes, address)


def receive(descriptor):
    source = listener if descriptor == listener.fileno() else upstream[clients[descriptor]]
    while True:
        try:
            datagram, address = source.recvfrom(65536)
        except BlockingIOError:
            return
        except OSError:
            continue  # an ICMP error of an earlier datagram
        due = time.monotonic() + delay
        if source is not listener:
            held.append((due, listener, datagram, clients[descriptor]))
            continue
        if address not in upstream:
            upstream[address] = opened = open_socket()
            clients[opened.fileno()] = address
            poll.register(opened, select.EPOLLIN)
        held.append((due, upstream[address], datagram, target))


while True:
    wait = max(0.0, held[0][0] - time.monotonic()) if held else -1
    for descriptor, _ in poll.poll(wait):
        receive(descriptor)
    now = time.monotonic()
    while held and held[0][0] <= now:
        _, through, datagram, address = held.popleft()
        try:
            through.sendto(datagram, address)
        except OSError:
            pass  # too large, or the buffer is full: lost
