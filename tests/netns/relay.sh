#!/usr/bin/env bash
# A relay between client and server: both hops lose packets, and the relay repairs them without the keys of the ends.
#
#   client --- path 1 --- relay --- path 2 --- server       the relays are alone in their namespace, both ends share one
#          --- path 3 --- relay --- path 4 ---              the second relay
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly PATHS=4
readonly RELAY=10.71.1.1:4434 SECOND=10.71.3.1:4435 SERVER_BEHIND=10.71.2.2
need curl python3
network
# conditions LOSS LOSS: of the first and the second hop of each relay
conditions() {
    local path
    for path in 1 2 3 4; do
        link "$path rate 25mbit queue 100kb loss $((path % 2 ? $1 : $2))% delay 10ms"
    done
}
conditions 10 10
program_and_keys
for name in relay second; do
    "$ctcp" keygen --out "$scratch/$name.key" >"$scratch/$name.pub"
done
random_file "$scratch/www/twenty" 20000000
random_file "$scratch/www/small" 10000
background "$client_ns" web.log python3 -m http.server --bind "$SERVER_BEHIND" --directory "$scratch/www" 8000
wait_until 10 listens_tcp "$client_ns" 8000 || { cat "$scratch/web.log"; exit 1; }
readonly WEB=http://$SERVER_BEHIND:8000
# Between the second relay and the server packets take the fourth path.
ip -n "$server_ns" route add "$SERVER_BEHIND" dev path4 table 34
ip -n "$server_ns" rule add from "${SECOND%:*}" to "$SERVER_BEHIND" lookup 34
ip -n "$client_ns" route add "${SECOND%:*}" dev path4 table 34
ip -n "$client_ns" rule add from "$SERVER_BEHIND" to "${SECOND%:*}" lookup 34
server=$(cat "$scratch/server.pub") relay=$(cat "$scratch/relay.pub") second=$(cat "$scratch/second.pub")
readonly TO=$SERVER_BEHIND:$SERVER_PORT=$server VIA=$RELAY=$relay

serve() {
    background "$client_ns" server.log "$ctcp" server --listen "$SERVER_BEHIND:$SERVER_PORT" --key "$scratch/server.key" \
        --client "$(cat "$scratch/client.pub")" --allow-target "$SERVER_BEHIND" "$@"
    server_pid=$pid
    wait_until 10 listens_udp "$client_ns" "$SERVER_PORT" || { cat "$scratch/server.log"; exit 1; }
}

second_relay() {
    background "$server_ns" second.log "$ctcp" relay --listen "$SECOND" --key "$scratch/second.key" \
        --client "$(cat "$scratch/client.pub")" --to "$TO"
    second_pid=$pid
    wait_until 10 listens_udp "$server_ns" "${SECOND##*:}"
}

# start_relay MODE OPTION...
start_relay() {
    local mode=$1
    shift
    [ -z "${relay_pid:-}" ] || stop "$relay_pid"
    # Without an address of its own, so that packets to the server leave with that of the second path.
    background "$server_ns" relay.log "$ctcp" relay --listen "0.0.0.0:${RELAY##*:}" --key "$scratch/relay.key" --mode "$mode" \
        --client "$(cat "$scratch/client.pub")" "$@"
    relay_pid=$pid
    wait_until 10 listens_udp "$server_ns" "${RELAY##*:}" || { cat "$scratch/relay.log"; exit 1; }
}

readonly plain=(--server "$SERVER_BEHIND:$SERVER_PORT" --server-key "$server" --key "$scratch/client.key")
remote=("${plain[@]}" --via "$VIA")

restart_client() {
    [ -z "${client_pid:-}" ] || stop "$client_pid"
    start_client "$@"
}

download() {
    local begin end
    rm -f "$scratch/got"
    begin=$(milliseconds)
    fetch "$WEB/twenty" "$scratch/got" || { tail -n 3 "$scratch/client.log"; return 1; }
    end=$(milliseconds)
    cmp "$scratch/www/twenty" "$scratch/got" || return 1
    echo "$((20000000 * 8 / (end - begin) / 25)) thousandths of the link"
    # The bounds are lower than what a quiet machine reaches.
    [ $((20000000 * 8 / (end - begin) / 25)) -ge "$1" ]
}

small() { fetch "$WEB/small" "$scratch/got" "$@" && cmp "$scratch/www/small" "$scratch/got"; }

# refused TEXT: requests fail, and the client's log says why
refused() {
    restart_client
    ! small --proxy "socks5h://$SOCKS" --max-time 8 || return 1
    grep -q -- "$1" "$scratch/client.log" || { tail -n 3 "$scratch/client.log"; return 1; }
}

# one_of_two_cold LEAST: a download over two relays by a new client, or else that of another one
one_of_two_cold() {
    for _ in first second; do
        restart_client
        wait_until 5 grep -q 'new path' "$scratch/client.log" || return 1
        download "$1" && return 0
    done
    return 1
}

# A download goes on without a pause when one of two relays dies.
survives() {
    (sleep 2; kill -KILL "$second_pid") &
    download "$1"
}

relay_returns() {
    stop "$relay_pid"
    ! small --proxy "socks5h://$SOCKS" --max-time 3 || return 1
    start_relay recode --to "$TO"
    wait_until 40 small
}

hides_the_contents() {
    printf 'never seen by the relay %.0s' {1..2000} >"$scratch/www/marked"
    rm -f "$scratch/capture"
    on_server timeout 5 python3 -c '
import socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
raw.settimeout(1)
with open(sys.argv[1], "wb") as out:
    try:
        while True: out.write(raw.recv(65535))
    except TimeoutError: pass' "$scratch/capture" &
    local capture=$!
    sleep 0.3
    fetch "$WEB/marked" "$scratch/got" && cmp "$scratch/www/marked" "$scratch/got" || return 1
    python3 - "$relay_pid" "$scratch"/{relay,client,server}.key <<'PY' || return 1
import base64, re, sys
process, *files = sys.argv[1:]
own, *others = (base64.b64decode(open(file).read()) for file in files)
wanted = {"its own key": own, "the contents": b"never seen by the relay", "the client's key": others[0], "the server's key": others[1]}
found = dict.fromkeys(wanted, 0)
with open(f"/proc/{process}/maps") as maps, open(f"/proc/{process}/mem", "rb") as memory:
    for line in maps:
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
        if match:
            begin, end = (int(part, 16) for part in match.groups())
            try:
                memory.seek(begin)
                contents = memory.read(end - begin)
            except OSError:
                continue
            for name, text in wanted.items():
                found[name] += contents.count(text)
print("in the memory of the relay:", ", ".join(f"{name} {count} times" for name, count in found.items()))
sys.exit(found.pop("its own key") == 0 or any(found.values()))
PY
    wait "$capture" || true
    [ "$(stat -c %s "$scratch/capture")" -gt 50000 ] || { echo 'the capture is too short'; return 1; }
    ! grep -q 'never seen by the relay' "$scratch/capture"
}

# Strangers who know the relay's public key send first packets from many networks, while a client connects and downloads.
withstands_a_flood() {
    local before after
    before=$(resident_kilobytes "$relay_pid")
    ip -n "$server_ns" route replace local 64.0.0.0/3 dev lo
    background "$server_ns" flood.log python3 "$repository/tests/netns/strangers.py" "${RELAY%:*}" "${RELAY##*:}" 4 3000 200 informed "$relay"
    local flood=$pid status=0
    sleep 2
    restart_client
    wait_until 10 small || status=1
    download 300 || status=1
    stop "$flood" TERM
    cat "$scratch/flood.log"
    after=$(resident_kilobytes "$relay_pid")
    echo "resident: $before kB before, $after kB after"
    [ "$status" = 0 ] && [ $((after - before)) -lt 32768 ]
}

serve --relay "$relay" --relay "$second"
start_relay recode --to "$TO"
restart_client
check 'a download through a relay that recodes, 10 % lost on each hop' shown download 750
check 'the relay has nothing of it in its memory or on its wires' shown hides_the_contents
conditions 20 20
check 'a download through a relay that recodes, 20 % lost on each hop' shown download 700
second_relay
remote=("${plain[@]}" --via "$VIA,$SECOND=$second")
# About one cold start in fifty is slow, so a second one may show what the first did not.
check 'two relays side by side, 20 % lost on each hop' shown one_of_two_cold 1300
check 'the same once more, after slow start' shown download 1300
# The ways are lost one after the other, so that there is always one.
stop "$server_pid"
kill -STOP "$second_pid"
serve --relay "$relay" --relay "$second"
sleep 2
kill -CONT "$second_pid"
check 'both lead to a server that has restarted' wait_until 15 small --proxy "socks5h://$SOCKS" --max-time 12
check 'one of them dies during a download' shown survives 500
remote=("${plain[@]}" --via "$VIA")
start_relay repeat --to "$TO"
restart_client
check 'a download through a relay that repeats, 20 % lost on each hop' shown download 650
conditions 10 10
start_relay forward --to "$TO"
restart_client
check 'a download through a relay that forwards, 10 % lost on each hop' shown download 600
conditions 0 0
start_relay recode --to "$TO"
restart_client
check 'a request works' small
check 'a relay that is gone and returns' relay_returns
check 'first packets of strangers, 3,000 a second' shown withstands_a_flood
remote=("${plain[@]}" --via "$VIA" --via "$VIA")
check 'a way that passes the relay twice is refused' refused 'a way passes a relay only once'
remote=("${plain[@]}" --via "$VIA")
stop "$relay_pid"
start_relay recode --allow-target "${SERVER_BEHIND%.*}.0/24:$SERVER_PORT"
restart_client
check 'a relay carries where its rules allow it' small
stop "$relay_pid"
start_relay recode --to "10.71.2.2:9=$server"
check 'a relay that may not carry there refuses' refused 'does not carry to'
stop "$relay_pid"
background "$server_ns" relay.log "$ctcp" relay --listen "0.0.0.0:${RELAY##*:}" --key "$scratch/relay.key" --client "$(cat "$scratch/stranger.pub")" --to "$TO"
relay_pid=$pid
wait_until 10 listens_udp "$server_ns" "${RELAY##*:}"
check 'a relay that does not know the client refuses' refused "is not on the other side's list"
start_relay recode --to "$TO"
stop "$server_pid"
serve
check 'a server that does not know the relay refuses' refused 'a server: --relay'
stop "$server_pid"
serve --relay "$relay"
check 'a relay may not use the server itself' ends_with 1 'may only carry' \
    ip netns exec "$client_ns" timeout 20 "$ctcp" connect --server "$SERVER_BEHIND:$SERVER_PORT" --server-key "$server" --key "$scratch/relay.key" "$SERVER_BEHIND:8000"
check 'forwarding to any port is a wrong option' ends_with 2 'any UDP port' \
    "$ctcp" relay --listen 127.0.0.1:0 --key "$scratch/relay.key" --client "$server" --allow-target 127.0.0.0/8 --mode forward
check 'the relay itself as the next stop is a wrong option' ends_with 2 'key of the relay itself' \
    "$ctcp" relay --listen 127.0.0.1:0 --key "$scratch/relay.key" --client "$server" --to "$VIA"
check 'a wrong stop is a wrong option' ends_with 2 'HOST:PORT=PUBKEY' "$ctcp" client "${remote[@]}" --socks "$SOCKS" --via nowhere
check 'relay and server are alive' is_alive "$relay_pid" "$server_pid"
finish
