"""Programs of udp.sh.

    udp.py echo ADDRESS PORT                        answers each datagram with itself
    udp.py sizes TARGET PORT SIZE...                sends datagrams to an echo: a line "SIZE ok TRIES" for each,
                                                    or "SIZE silence", or "SIZE error TEXT" if the program saw an error
    udp.py pysocks PROXY:PORT TARGET PORT SIZE...   the same with PySocks
    udp.py h3 HOST PORT PATH OUTPUT                 downloads by HTTP/3, with aioquic
    udp.py frames SENT RECEIVED COUNT               looks for the first frames sent in two outputs of ffmpeg's framemd5
    udp.py times < LOG                              median and 95th percentile of dig's query times, and what failed
"""

import asyncio, re, socket, ssl, statistics, sys, time
from collections import Counter

TRIES, PATIENCE = 4, 1.5


def echo(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = socket.socket(family, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    server.bind((address, int(port)))
    while True:
        data, source = server.recvfrom(65536)
        server.sendto(data, source)


def echoed(client, target, data):
    for attempt in range(1, TRIES + 1):
        try:
            client.sendto(data, target)
            end = time.monotonic() + PATIENCE
            while (left := end - time.monotonic()) > 0:
                client.settimeout(left)
                if client.recvfrom(65536)[0] == data:
                    return f"ok {attempt}"
        except TimeoutError:
            pass
        except OSError as error:
            return f"error {error}"
    return "silence"


def sizes(client, target, port, *wanted):
    for size in map(int, wanted):
        data = bytes((at * 31 + size) % 251 for at in range(size))
        print(size, echoed(client, (target, int(port)), data), flush=True)


def plain_sizes(target, *rest):
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    sizes(socket.socket(family, socket.SOCK_DGRAM), target, *rest)


def pysocks(proxy, *rest):
    import socks

    client = socks.socksocket(socket.AF_INET, socket.SOCK_DGRAM)
    host, port = proxy.rsplit(":", 1)
    client.set_proxy(socks.SOCKS5, host, int(port))
    sizes(client, *rest)


def h3(host, port, path, output):
    from aioquic.asyncio.client import connect
    from aioquic.asyncio.protocol import QuicConnectionProtocol
    from aioquic.h3.connection import H3_ALPN, H3Connection
    from aioquic.h3.events import DataReceived
    from aioquic.quic.configuration import QuicConfiguration

    class Download(QuicConnectionProtocol):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.http, self.body, self.done = H3Connection(self._quic), bytearray(), asyncio.Event()

        def quic_event_received(self, event):
            for got in self.http.handle_event(event):
                if isinstance(got, DataReceived):
                    self.body += got.data
                    if got.stream_ended:
                        self.done.set()

    async def run():
        configuration = QuicConfiguration(is_client=True, alpn_protocols=H3_ALPN, verify_mode=ssl.CERT_NONE)
        configuration.server_name = "localhost"
        configuration.max_data = configuration.max_stream_data = 8 << 20
        async with connect(host, int(port), configuration=configuration, create_protocol=Download) as client:
            fields = {":method": "GET", ":scheme": "https", ":authority": "localhost", ":path": path}
            stream = client._quic.get_next_available_stream_id()
            client.http.send_headers(stream, [(k.encode(), v.encode()) for k, v in fields.items()], end_stream=True)
            client.transmit()
            await client.done.wait()
            with open(output, "wb") as file:
                file.write(client.body)

    asyncio.run(run())


def frames(sent, received, count):
    def hashes(name):
        with open(name) as file:
            return [line.split(",")[-1].strip() for line in file if not line.startswith("#")]

    sent, received = hashes(sent)[: int(count)], hashes(received)
    same = (Counter(sent) & Counter(received)).total()
    print(f"{same} of {len(sent)} frames identical, {len(received)} received")


def times():
    log = sys.stdin.read()
    taken = sorted(int(match) for match in re.findall(r"Query time: (\d+) msec", log))
    good = len(re.findall(r"status: NOERROR", log))
    middle = statistics.median(taken) if taken else 0
    late = taken[int(len(taken) * 0.95)] if taken else 0
    print(f"{good} answered, median {middle:.0f} ms, p95 {late} ms, longest {max(taken, default=0)} ms")


if __name__ == "__main__":
    commands = {"echo": echo, "sizes": plain_sizes, "pysocks": pysocks, "h3": h3, "frames": frames, "times": times}
    commands[sys.argv[1]](*sys.argv[2:])
