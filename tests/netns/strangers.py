"""Sends first packets that do not open, from many networks, at a steady rate, until SIGTERM.

    strangers.py ADDRESS PORT VERSION RATE NETWORKS ignorant|informed SERVER_PUBLIC_KEY

Each stranger is the only one in its network of 16 bits. It receives at its address and returns the cookies that it gets. An informed
stranger knows the server's public key and writes the right tag (PROTOCOL.md section 3). Version 1 had no tags.
"""

import base64, hmac, os, random, signal, socket, struct, sys, time

address, port, version, rate, networks, kind, public_key = sys.argv[1:]
target, version, rate, networks = (address, int(port)), int(version), int(rate), int(networks)
SIZE, MESSAGE, TAG, IP_PKTINFO = 1200, 200, 16, 8
STEP = 0.0001  # seconds between packets: bursts would leave gaps in which a client is admitted easily
tag_key = hmac.digest(base64.b64decode(public_key), b"ctcp first packet\x01", "sha256")  # HKDF-Expand, one block
head = bytes([0xC0]) + bytes.fromhex("435400") + bytes([version])
noise = os.urandom(1 << 20)

places = random.Random(1).sample(range(48 << 8), networks)  # 64.0.0.0 to 111.255.255.255
controls = []
for place in places:
    source = bytes([64 + (place >> 8), place & 255, 9, 9])
    controls.append([(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("=I4s4s", 0, source, bytes(4)))])
tokens = [b""] * networks

out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
out.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
out.bind(("0.0.0.0", 4000))
out.setblocking(False)


def first_packet(stranger):
    start = random.randrange(len(noise) - 8 - MESSAGE)
    garbage = noise[start : start + 8 + MESSAGE]
    # A quarter of the packets have no cookie, so that the server continues to request them, and cookies, which are
    # valid for 20 s, stay fresh.
    token = tokens[stranger] if sent % 4 else b""
    packet = b"".join((head, b"\x08", garbage[:8], b"\x08", stranger.to_bytes(8, "big"), bytes([len(token)]), token, struct.pack(">H", 0x4000 | MESSAGE), garbage[8:]))
    packet = packet.ljust(SIZE - TAG, b"\0")
    return packet + (hmac.digest(tag_key, packet, "sha256")[:TAG] if kind == "informed" else bytes(TAG))


def take_answers():
    global cookies
    while True:
        try:
            answer = out.recv(2048)
        except BlockingIOError:
            return
        except OSError:
            continue
        # A COOKIE: our id of 8 bytes, the server's of 8, and a token shorter than 64.
        if len(answer) > 24 and answer[0] & 0xF0 == 0xE0:
            tokens[int.from_bytes(answer[6:14], "big")] = answer[24 : 24 + answer[23]]
            cookies += 1


cookies, sent, failed, begin, running = 0, 0, 0, time.monotonic(), True


def stop(*_):
    global running
    running = False


signal.signal(signal.SIGTERM, stop)
while running:
    due = int((time.monotonic() - begin) * rate)
    while sent < due:
        stranger = random.randrange(networks)
        try:
            out.sendmsg([first_packet(stranger)], controls[stranger], 0, target)
        except OSError:
            failed += 1
        sent += 1
    take_answers()
    time.sleep(STEP)
passed = time.monotonic() - begin
print(f"{(sent - failed) / passed:.0f} first packets a second from {networks} networks, {cookies} cookies, {sum(map(bool, tokens))} strangers with one")
