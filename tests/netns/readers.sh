#!/usr/bin/env bash
# A new transfer beside a hundred through the same client whose reader stopped, in both directions; and what many such clients make a server hold.
# READERS_RTT=200 gives the path a round trip of so many milliseconds.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need python3
network
program_and_keys
# Nothing is lost: whether a transfer meets a loss is luck. Small buffers of local sockets, so that readers who stop soon stop their writers.
link 'loss 0'
for namespace in "$server_ns" "$client_ns"; do
    ip netns exec "$namespace" sysctl -qw net.ipv4.tcp_rmem='4096 65536 65536' net.ipv4.tcp_wmem='4096 65536 65536'
done
if [ -n "${READERS_RTT:-}" ]; then
    link "rate 50mbit queue 2mb delay $((READERS_RTT / 2))ms"
else
    link 'rate 200mbit queue 1mb'
fi
background "$server_ns" peer.log python3 "$repository/tests/netns/readers.py" serve "$SERVER_ADDRESS" 9000
wait_until 10 listens_tcp "$server_ns" 9000 || { cat "$scratch/peer.log"; exit 1; }
start_server --allow-target "$SERVER_ADDRESS:9000"

# beside_stopped download|upload: with a client of its own, so that neither direction sees what the other left behind
beside_stopped() {
    local status=0
    start_client
    on_client python3 "$repository/tests/netns/readers.py" "$1" "$SERVER_ADDRESS" 9000 || status=1
    stop "$client_pid"
    return $status
}

# Twenty clients with one key, each with a hundred uploads that nobody reads.
filled() {
    local number ports=()
    for number in {1..20}; do
        ports+=($((2000 + number)))
        background "$client_ns" "client-$number.log" "$ctcp" client "${remote[@]}" --socks "127.0.0.1:$((2000 + number))"
    done
    wait_until 20 listens_tcp "$client_ns" 2020 || return 1
    on_client python3 "$repository/tests/netns/readers.py" fill "$SERVER_ADDRESS" 9000 "$server_pid" "${ports[@]}"
}

check 'downloads' shown beside_stopped download
check 'uploads' shown beside_stopped upload
[ -n "${READERS_RTT:-}" ] || check 'memory of twenty clients' shown filled
finish
