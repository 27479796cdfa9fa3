#!/usr/bin/env bash
# Invalid data on every port, unlisted keys and forbidden targets: the server continues to serve.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
network
program_and_keys
link 'loss 0'
random_file "$scratch/www/small" 100000
start_web
start_server --allow-target "$SERVER_ADDRESS:8000"
start_client --wait-for-targets # so that each forbidden target gets its status
readonly WEB=http://$SERVER_ADDRESS:8000
# The permitted growth of the server's memory by random datagrams: they leave nothing behind, but touch new pages.
readonly GROWTH_KILOBYTES=8192

serves() {
    rm -f "$scratch/small"
    fetch "$WEB/small" "$scratch/small" && cmp "$scratch/www/small" "$scratch/small" && is_alive "$server_pid" "$client_pid"
}

# Sends 100,000 datagrams, random ones and ones with valid-looking headers. They are sent on the server's side, to avoid
# the link.
datagrams() {
    local before after
    before=$(resident_kilobytes "$server_pid")
    on_server python3 - "$SERVER_ADDRESS" "$SERVER_PORT" <<'PYTHON' || return 1
import os, random, socket, sys
target = (sys.argv[1], int(sys.argv[2]))
chance, noise = random.Random(1), os.urandom(1 << 20)
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
out.setblocking(False)
version, sent, answered, back = bytes.fromhex("43540001"), 0, 0, 0
for i in range(100_000):
    begin = chance.randrange(len(noise) - 1500)
    datagram = noise[begin:begin + chance.choice((chance.randrange(60), chance.randrange(300), 1200, 1472))]
    shape = i % 4
    if shape == 1:
        datagram = bytes([0xc0 | chance.randrange(4) << 4]) + version + datagram[5:]
    elif shape == 2:
        datagram = bytes([0xc0 | chance.randrange(4) << 4]) + version + b"\x08" + noise[:8] + b"\x08" + datagram[22:]
    elif shape == 3:
        datagram = bytes([0x40 | chance.randrange(64)]) + datagram[1:]
    out.sendto(datagram, target)
    sent += len(datagram)
    if i % 16 == 0:
        try:
            while True:
                back += len(out.recv(2048))
                answered += 1
        except BlockingIOError:
            pass
print(f"{sent} bytes, {answered} answers of {back} bytes")
sys.exit(0 if back < sent else "more bytes came back than were sent")
PYTHON
    after=$(resident_kilobytes "$server_pid")
    echo "resident: $before kB before, $after kB after"
    [ $((after - before)) -lt "$GROWTH_KILOBYTES" ]
}

# said_no TEXT KEY SERVER_KEY: connecting with these keys must fail with this text
said_no() {
    ends_with 1 "$1" on_client timeout 30 "$ctcp" connect --server "$SERVER_ADDRESS:$SERVER_PORT" --server-key "$3" \
        --key "$scratch/$2.key" "$SERVER_ADDRESS:8000" </dev/null
}

# Data that is neither SOCKS nor HTTP: each connection must be answered or closed.
nonsense() {
    on_client python3 - <<'PYTHON'
import os, select, socket, sys, time
greeting = b"\x05\x01\x00"
socks = [b"\x05", b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00", b"GET / HTTP/1.1\r\n\r\n", b"\x05\x00", b"\x05\xff" + bytes(range(1, 256)), os.urandom(4000),
         greeting + b"\x05\x02\x00\x01\x0a\x47\x01\x01\x1f\x40", greeting + b"\x05\x01\x00\x02abcdef", greeting + b"\x05\x01\x00\x03\x00\x00\x50",
         greeting + b"\x05\x01\x00\x03\x04a\0.b\x00\x50", greeting + b"\x05\x01\x00\x03\x02\xff\xfe\x00\x50", greeting + b"\x05\x01\x00\x03\x20cut"]
http = [os.urandom(3000), b"CONNECT HTTP/1.1\r\n\r\n", b"CONNECT a:99999 HTTP/1.1\r\n\r\n", b"GET http://" + b"a" * 100000 + b"/ HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost"]
waiting = {}
for port, texts in ((1080, socks), (3128, http)):
    for text in texts:
        connection = socket.create_connection(("127.0.0.1", port), 5)
        try:
            connection.sendall(text)
        except OSError:
            pass
        waiting[connection] = (port, text[:40])
end = time.monotonic() + 30
while waiting and time.monotonic() < end:
    for connection in select.select(list(waiting), [], [], 1)[0]:
        try:
            if connection.recv(4096):
                continue
        except OSError:
            pass
        del waiting[connection]
sys.exit(f"left hanging: {list(waiting.values())}" if waiting else 0)
PYTHON
}

# forbidden STATUS TARGET: HTTP CONNECT to the target must be answered with this status
forbidden() {
    local answer
    answer=$(on_client curl --silent --max-time 20 --proxytunnel --proxy "http://$HTTP" --output /dev/null \
        --write-out '%{http_connect}' "http://$2/" || true)
    echo "answer: $answer"
    [ "$answer" = "$1" ]
}

check 'the server serves at first' serves
check '100,000 random datagrams' datagrams
check 'the server serves after the datagrams' serves
check "a key that is not listed" said_no 'key' stranger "$(cat "$scratch/server.pub")"
check "a wrong server's key" said_no 'key' client "$(cat "$scratch/stranger.pub")"
check 'invalid data instead of SOCKS and HTTP' nonsense
for target in 127.0.0.1:8000 127.1:8000 localhost:8000 '[::1]:8000' '[::ffff:127.0.0.1]:8000' 169.254.169.254:80 10.0.0.1:80 \
    "$SERVER_ADDRESS:22" '[::ffff:10.71.1.1]:22' 0.0.0.0:8000 '[fe80::1]:80' '[64:ff9b::7f00:1]:80'; do
    check "target $target is forbidden" forbidden 403 "$target"
done
check 'the server serves in the end' serves
finish
