#!/usr/bin/env bash
# Unchanged programs over UDP, through forwards and SOCKS5, over a link that loses 8 % each way with a round trip of 50 ms; and the same
# link without ctcp beside it. Programs that are missing are skipped by name; benchmarks/udp-programs/install installs most of them. The
# long ones (video, HTTP/3, WireGuard) run only if UDP_PROGRAMS names the folder of that script.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly PROGRAMS=${UDP_PROGRAMS:-$HOME/.cache/ctcp-udp-programs}
readonly BAD_LINK='rate 25mbit queue 256kb loss 0.08 delay 25ms'
readonly HELPER=$repository/tests/netns/udp.py
readonly SIZES='1 2 100 1000 1400 1472 1500 4000 9000 20000 40000 65000'

need python3
network
link "$BAD_LINK"
program_and_keys
start_server --allow-target "$SERVER_ADDRESS"
start_client --forward "udp:127.0.0.1:5300=$SERVER_ADDRESS:53" --forward "udp:127.0.0.1:5182=$SERVER_ADDRESS:51820" \
    --forward "udp:127.0.0.1:4430=$SERVER_ADDRESS:443" --forward "udp:127.0.0.1:7070=$SERVER_ADDRESS:7007" \
    --forward "udp:127.0.0.1:5004=$SERVER_ADDRESS:5004" --forward "udp:127.0.0.1:5005=$SERVER_ADDRESS:5005" \
    --forward "udp:127.0.0.1:9999=$SERVER_ADDRESS:9999"
background "$server_ns" echo.log python3 "$HELPER" echo "$SERVER_ADDRESS" 7007
wait_until 10 listens_udp "$server_ns" 7007

# missing NAME COMMAND...: returns true, and says so, if one of the commands is missing
missing() {
    local name=$1 command
    shift
    for command in "$@"; do
        { command -v "$command" >/dev/null 2>&1 || [ -r "$command" ]; } && continue
        printf 'SKIP %s: %s: %s is not installed\n' "$script_name" "$name" "$command"
        return 0
    done
    return 1
}

# in_python MODULE: prints a Python that has the module
in_python() {
    local python
    for python in "$PROGRAMS/python/bin/python" python3; do
        "$python" -c "import $1" 2>/dev/null && { echo "$python"; return; }
    done
    echo "the Python module $1"
}

# ---- sizes

# sizes_pass BOUND COMMAND...: the command echoes all sizes up to BOUND, and sees an error beyond it
sizes_pass() {
    local bound=$1 status=0
    shift
    # shellcheck disable=SC2086
    timeout 60 "$@" $SIZES "$bound" $((bound + 1)) >"$scratch/sizes" 2>&1 || status=$?
    cat "$scratch/sizes"
    [ "$status" -eq 0 ] && ! grep -vE "^[0-9]+ ok [12]$|^$((bound + 1)) error " "$scratch/sizes" &&
        grep -q "^$((bound + 1)) error " "$scratch/sizes" && grep -q "^$bound ok" "$scratch/sizes"
}

check 'forward, 1 to 65,507 bytes' sizes_pass 65507 ip netns exec "$client_ns" python3 "$HELPER" sizes 127.0.0.1 7070
python=$(in_python socks)
missing 'SOCKS5, PySocks' "$python" ||
    check 'SOCKS5, PySocks, 1 to 65,497 bytes' sizes_pass 65497 ip netns exec "$client_ns" "$python" "$HELPER" pysocks "$SOCKS" "$SERVER_ADDRESS" 7007
missing 'SOCKS5, fast-socks5 (Rust)' "$PROGRAMS/socks-rust" ||
    check 'SOCKS5, fast-socks5 (Rust), 1 to 65,497 bytes' sizes_pass 65497 ip netns exec "$client_ns" "$PROGRAMS/socks-rust" "$SOCKS" "$SERVER_ADDRESS" 7007
missing 'SOCKS5, socks (Node)' node "$PROGRAMS/socks.js" ||
    check 'SOCKS5, socks (Node), 1 to 65,497 bytes' sizes_pass 65497 ip netns exec "$client_ns" node "$PROGRAMS/socks.js" "$SOCKS" "$SERVER_ADDRESS" 7007

# ---- DNS

start_dns() {
    local block
    block=$(head -c 250 /dev/zero | tr '\0' x)
    background "$server_ns" dns.log dnsmasq --keep-in-foreground --no-resolv --no-hosts --conf-file=/dev/null --user=root \
        --pid-file= --bind-interfaces --listen-address="$SERVER_ADDRESS" --edns-packet-max=4096 --address=/test/192.0.2.7 \
        --txt-record="large.test,$block,$block,$block,$block,$block,$block,$block,$block,$block,$block,$block,$block"
    wait_until 10 listens_udp "$server_ns" 53 || { cat "$scratch/dns.log"; return 1; }
}

# queries SERVER PORT COUNT
queries() {
    # Ports by number: of two that run at the same time, one was seen to receive the answer to the other ("ID mismatch").
    seq 20001 $((20000 + $3)) | on_client xargs -P 4 -I '{}' timeout 10 dig -b '0.0.0.0#{}' "@$1" -p "$2" +tries=1 +time=2 '{}.test' A >"$scratch/dig" 2>&1 || true
    python3 "$HELPER" times <"$scratch/dig"
}

all_answered() {
    queries 127.0.0.1 5300 200 >"$scratch/coded" || return 1
    queries "$SERVER_ADDRESS" 53 200 >"$scratch/raw" || return 1
    echo "ctcp: $(cat "$scratch/coded")"
    echo "raw:  $(cat "$scratch/raw")"
    grep -q '^200 answered' "$scratch/coded"
}

large_answered() {
    local i
    for i in $(seq 20); do
        on_client dig @127.0.0.1 -p 5300 +tries=1 +time=2 +ignore +bufsize=4096 large.test TXT >"$scratch/dig" || return 1
        grep -q 'status: NOERROR' "$scratch/dig" && grep -qE 'MSG SIZE +rcvd: 30[0-9][0-9]' "$scratch/dig" || { tail -n 6 "$scratch/dig"; return 1; }
    done
}

if ! missing 'DNS' dig dnsmasq && start_dns; then
    check '200 queries of dig' shown all_answered
    check '20 answers of 3 KB over EDNS' large_answered
fi

# ---- QUIC

quic_fetched() {
    local begin name port address
    for name in ctcp raw; do
        address=$SERVER_ADDRESS port=443
        [ "$name" = raw ] || address=127.0.0.1 port=4430
        rm -f "$scratch/h3"
        begin=$(milliseconds)
        on_client timeout 40 "$python" "$HELPER" h3 "$address" "$port" /five "$scratch/h3" || echo "status $?"
        echo "$name: $(($(milliseconds) - begin)) ms for 5 MB"
        cmp "$scratch/www/five" "$scratch/h3" || [ "$name" = raw ] || return 1
    done
}

python=$(in_python aioquic)
if ! missing 'HTTP/3' "$PROGRAMS/quic-go" "$python"; then
    random_file "$scratch/www/five" 5000000
    openssl req -x509 -newkey ed25519 -nodes -subj /CN=localhost -keyout "$scratch/h3.key" -out "$scratch/h3.crt" 2>/dev/null
    background "$server_ns" quic.log "$PROGRAMS/quic-go" -bind "$SERVER_ADDRESS:443" -www "$scratch/www" -cert "$scratch/h3.crt" -key "$scratch/h3.key"
    wait_until 10 listens_udp "$server_ns" 443 && check 'HTTP/3, aioquic from quic-go' shown quic_fetched
fi

# ---- video

# film ADDRESS NAME: sends the film as RTP to port 5004, at the speed of playing, and receives it. The receiver keeps
# the last frames until others follow, so the first 250 of 260 count.
film() {
    local receiver
    background "$server_ns" "$2.log" ffmpeg -nostdin -loglevel error -protocol_whitelist file,udp,rtp -i "$scratch/film.sdp" \
        -map 0:v -vsync passthrough -f framemd5 -flush_packets 1 "$scratch/$2.md5"
    receiver=$pid
    wait_until 10 listens_udp "$server_ns" 5004
    on_client timeout 30 ffmpeg -nostdin -loglevel error -re -i "$scratch/film.mp4" -c copy -f rtp "rtp://$1:5004?rtcpport=5005&pkt_size=1200" >/dev/null
    sleep 2
    stop "$receiver" INT
    echo "$(python3 "$HELPER" frames "$scratch/film.md5" "$scratch/$2.md5" 250), $(wc -l <"$scratch/$2.log") complaints of the decoder"
}

film_is_whole() {
    ffmpeg -nostdin -loglevel error -f lavfi -i testsrc2=size=640x360:rate=25 -t 10.4 -c:v libx264 -preset ultrafast -tune zerolatency \
        -g 50 -b:v 2M -maxrate 2M -bufsize 500k -pix_fmt yuv420p "$scratch/film.mp4" || return 1
    ffmpeg -nostdin -loglevel error -i "$scratch/film.mp4" -vsync passthrough -f framemd5 "$scratch/film.md5" || return 1
    # The description of the stream, without sending it anywhere.
    ffmpeg -nostdin -loglevel error -i "$scratch/film.mp4" -t 0.1 -c copy -f rtp -sdp_file "$scratch/film.sdp" "rtp://127.0.0.1:5004?rtcpport=5005" >/dev/null || return 1
    sed -i "s/IN IP4 127.0.0.1/IN IP4 $SERVER_ADDRESS/" "$scratch/film.sdp"
    film 127.0.0.1 coded >"$scratch/coded" || return 1
    film "$SERVER_ADDRESS" raw >"$scratch/raw" || return 1
    echo "ctcp: $(cat "$scratch/coded")"
    echo "raw:  $(cat "$scratch/raw")"
    grep -q '^250 of 250 frames identical, .* 0 complaints' "$scratch/coded"
}

[ -z "${UDP_PROGRAMS:-}" ] || missing 'video' ffmpeg || check '10 s of video over RTP' shown film_is_whole

# ---- WireGuard

# wireguard NAMESPACE DEVICE PORT ADDRESS: starts wireguard-go
wireguard() {
    background "$1" wireguard.log env WG_PROCESS_FOREGROUND=1 LOG_LEVEL=error "$PROGRAMS/wireguard-go" --foreground "$2"
    wait_until 10 ip netns exec "$1" wg show "$2" >/dev/null 2>&1 || { cat "$scratch/wireguard.log"; return 1; }
    ip netns exec "$1" wg set "$2" private-key "$scratch/$2.key" listen-port "$3"
    ip -n "$1" address add "$4/24" dev "$2"
    ip -n "$1" link set "$2" mtu 1420 up
}

start_wireguard() {
    local device
    for device in "ws$$" "wc$$"; do (umask 077; wg genkey >"$scratch/$device.key"); done
    wireguard "$server_ns" "ws$$" 51820 10.99.0.1 && wireguard "$client_ns" "wc$$" 51821 10.99.0.2 || return 1
    background "$server_ns" tunnel_echo.log python3 "$HELPER" echo 10.99.0.1 7008
    background "$server_ns" iperf.log iperf3 --server
    wait_until 10 listens_tcp "$server_ns" 5201
}

# through ADDRESS CONGESTION_CONTROL: Mbit/s of a download
through() {
    on_client timeout 20 iperf3 --client "$1" --time 6 --reverse --congestion "$2" --json | python3 -c \
        'import json, sys; print("%.2f" % (json.load(sys.stdin)["end"]["sum_received"]["bits_per_second"] / 1e6))'
}

# endpoint ADDRESS:PORT: where the client's WireGuard sends to. The server forgets the client first, because what it sends
# to the old address would lead the client back there.
endpoint() {
    local server client
    server=$(wg pubkey <"$scratch/ws$$.key") client=$(wg pubkey <"$scratch/wc$$.key")
    on_server wg set "ws$$" peer "$client" remove
    on_client wg set "wc$$" peer "$server" remove
    on_server wg set "ws$$" peer "$client" allowed-ips 10.99.0.2/32
    on_client wg set "wc$$" peer "$server" allowed-ips 10.99.0.1/32 endpoint "$1"
    wait_until 15 is_tunnelled
}

is_tunnelled() { on_client timeout 2 python3 "$HELPER" sizes 10.99.0.1 7008 1 | grep -q ok; }

wireguard_carried() {
    local control coded raw
    on_client sysctl -n net.ipv4.tcp_available_congestion_control >"$scratch/controls"
    for control in cubic bbr; do
        grep -q "$control" "$scratch/controls" || continue
        endpoint 127.0.0.1:5182 && coded=$(through 10.99.0.1 "$control") || return 1
        endpoint "$SERVER_ADDRESS:51820" && raw=$(through 10.99.0.1 "$control") || raw=none
        echo "$control in WireGuard: through ctcp $coded Mbit/s, raw $raw Mbit/s"
        [ "$control" = bbr ] || python3 -c 'import sys; sys.exit(float(sys.argv[1]) < 4)' "$coded" || return 1
    done
}

if ! missing 'WireGuard' "$PROGRAMS/wireguard-go" wg iperf3 && start_wireguard; then
    check 'iperf3 through WireGuard' shown wireguard_carried
fi

check 'server and client are still running' is_alive "$server_pid" "$client_pid"
finish
