#!/usr/bin/env bash
# A new transfer alongside a hundred through the same client whose readers stopped, in both directions, and the memory
# that many such clients use at a server. READERS_RTT=200 gives the path a round trip of 200 ms.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need python3
network
program_and_keys
# There is no loss, because it would affect single transfers by chance. Local sockets have small buffers, so that
# readers that stop soon block their writers.
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

# beside_stopped download|upload: uses a new client, so that neither direction is affected by the other's leftovers
beside_stopped() {
    local status=0
    start_client
    on_client python3 "$repository/tests/netns/readers.py" "$1" "$SERVER_ADDRESS" 9000 || status=1
    stop "$client_pid"
    return $status
}

# Twenty clients with one key, each with a hundred uploads that are never read.
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
