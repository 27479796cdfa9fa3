#!/usr/bin/env bash
# 10,000 first packets per second from 1,000 networks, while clients connect.
# STRANGERS_VERSION=1 CTCP=... tests a binary of version 1 of the protocol, whose first packets have no tag.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need python3
network
program_and_keys
random_file "$scratch/served/small" 1000
start_server --files "$scratch/served"
readonly RATE_OF_STRANGERS=10000 NETWORKS=1000 CLIENTS=40
# 95 of 100 clients must have their file within this time, including the start of a process and the loss of the link.
readonly BOUND_MILLISECONDS=1000
version=${STRANGERS_VERSION:-4}

# Strangers have a separate namespace and link, so that the clients' link is not loaded. All addresses from 64.0.0.0 to
# 127.255.255.255 are theirs.
strangers_ns=ctcp-$$-strangers
trap 'ip netns del "$strangers_ns" 2>/dev/null; clean_up' EXIT
ip netns add "$strangers_ns"
ip link add crowd netns "$server_ns" type veth peer name crowd netns "$strangers_ns"
for side in "$server_ns 10.72.1.1" "$strangers_ns 10.72.1.2"; do
    read -r namespace address <<<"$side"
    ip -n "$namespace" link set lo up
    ip -n "$namespace" link set crowd up
    ip -n "$namespace" address add "$address/24" dev crowd
    ip netns exec "$namespace" sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.crowd.rp_filter=0
done
ip -n "$server_ns" route add 64.0.0.0/3 via 10.72.1.2
ip -n "$server_ns" route add 96.0.0.0/4 via 10.72.1.2
ip -n "$strangers_ns" route add "$SERVER_ADDRESS" via 10.72.1.1
ip -n "$strangers_ns" route add local 64.0.0.0/3 dev lo
ip -n "$strangers_ns" route add local 96.0.0.0/4 dev lo
# Each client has a network of its own, too: forty connections in a few seconds from one network would be limited like
# strangers.
ip -n "$server_ns" route add 160.0.0.0/6 via "$CLIENT_ADDRESS"
ip -n "$client_ns" route add local 160.0.0.0/6 dev lo

# A run says nothing about the server if the machine itself stood still for this long meanwhile.
readonly STALL_MILLISECONDS=300 STALLED=3 TRIES=3

# clients_connect: starts a process every 0.15 s, each with its own handshake. Fails with STALLED if the machine stood still.
clients_connect() {
    on_client python3 - "$CLIENTS" "$BOUND_MILLISECONDS" "$STALL_MILLISECONDS" "$STALLED" "$scratch" "$ctcp" get -q "${remote[@]}" small <<'PYTHON'
import subprocess, sys, threading, time
*numbers, scratch = sys.argv[1:6]
command = sys.argv[6:]
clients, bound, stall, stalled = map(int, numbers)
waited, running, longest_stall = [], True, 0

def watch_the_machine():
    global longest_stall
    before = time.monotonic()
    while running:
        time.sleep(0.005)
        before, passed = time.monotonic(), time.monotonic() - before
        longest_stall = max(longest_stall, passed * 1000)

def connect(number):
    begin = time.monotonic()
    try:
        done = subprocess.run([*command, "--path", f"{160 + number % 4}.{number}.1.1", "-o", f"{scratch}/got-{number}"], timeout=10, capture_output=True).returncode == 0
    except subprocess.TimeoutExpired:
        done = False
    waited.append((time.monotonic() - begin) * 1000 if done else float("inf"))

watch = threading.Thread(target=watch_the_machine)
watch.start()
threads = [threading.Thread(target=connect, args=(number,)) for number in range(clients)]
for thread in threads:
    thread.start()
    time.sleep(0.15)
for thread in threads:
    thread.join()
running = False
watch.join()
waited.sort()
failed = waited.count(float("inf"))
median, most = waited[clients // 2], waited[-(-clients * 95 // 100) - 1]
print(f"{clients} clients: half in {median:.0f} ms, 95 % in {most:.0f} ms, {failed} not at all; the machine stood still for {longest_stall:.0f} ms at most")
sys.exit(0 if most <= bound else stalled if longest_stall > stall else 1)
PYTHON
}

processor_milliseconds() { awk '{ print ($14 + $15) * 10 }' "/proc/$server_pid/stat"; }

# beside KIND: runs strangers of this kind while the clients connect
beside() {
    local status=0 before begin
    background "$strangers_ns" "$1.log" python3 "$repository/tests/netns/strangers.py" "$SERVER_ADDRESS" "$SERVER_PORT" \
        "$version" "$RATE_OF_STRANGERS" "$NETWORKS" "$1" "$(cat "$scratch/server.pub")"
    sleep 2 # until the server requests cookies, and strangers have them
    before=$(processor_milliseconds) begin=$(milliseconds)
    clients_connect || status=$?
    echo "the server's share of a core: $(((($(processor_milliseconds) - before) * 100) / ($(milliseconds) - begin))) %"
    stop "$pid" TERM
    cat "$scratch/$1.log"
    return $status
}

# unless_stalled COMMAND...: repeats a run during which the machine stood still
unless_stalled() {
    local status try
    for ((try = 1; try <= TRIES; try++)); do
        status=0
        "$@" || status=$?
        [ $status -eq $STALLED ] || break
    done
    return $status
}

check 'without strangers' shown unless_stalled clients_connect
check 'alongside strangers who do not know the public key' shown unless_stalled beside ignorant
[ "$version" = 1 ] || check 'alongside strangers who know it' shown unless_stalled beside informed
finish
