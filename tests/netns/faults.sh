#!/usr/bin/env bash
# Faults during a transfer: the server is killed, the path is dead for a while, the client's address changes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
network
program_and_keys
random_file "$scratch/www/ten" 10000000
random_file "$scratch/www/small" 100000
start_web
start_server --allow-target "$SERVER_ADDRESS"
start_client
readonly WEB=http://$SERVER_ADDRESS:8000
# The aim is one second and two round trips; on a busy machine starting a process takes additional time.
readonly RECOVERY_MILLISECONDS=3000

has_bytes() { [ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt "$2" ]; }
is_gone() { ! kill -0 "$1" 2>/dev/null; }

# Starts a download in the background and waits for a megabyte: $download_pid
begin_download() {
    rm -f "$scratch/got"
    background "$client_ns" download.log curl --silent --show-error --max-time 90 --proxy "socks5h://$SOCKS" \
        --output "$scratch/got" "$WEB/ten"
    download_pid=$pid
    wait_until 20 has_bytes "$scratch/got" 1000000
}

small_fetched() {
    rm -f "$scratch/small"
    fetch "$WEB/small" "$scratch/small" && cmp "$scratch/www/small" "$scratch/small"
}

# The old download fails and a new one works, both soon after the server is back.
restarted() {
    local back status=0
    begin_download || return 1
    stop "$server_pid"
    start_server --allow-target "$SERVER_ADDRESS"
    back=$(milliseconds)
    small_fetched || { echo 'a new download failed'; return 1; }
    echo "the new download: $(($(milliseconds) - back)) ms"
    [ $(($(milliseconds) - back)) -le "$RECOVERY_MILLISECONDS" ] || return 1
    wait_until 5 is_gone "$download_pid" || { echo 'the old download hangs'; return 1; }
    echo "the old download ended at the latest after $(($(milliseconds) - back)) ms"
    [ $(($(milliseconds) - back)) -le "$RECOVERY_MILLISECONDS" ] || return 1
    wait "$download_pid" || status=$?
    [ "$status" -ne 0 ] || { echo 'the old download ended as if it were whole'; return 1; }
}

# A fault that a transfer survives.
goes_on() {
    local status=0
    begin_download || return 1
    "$@"
    wait "$download_pid" || status=$?
    [ "$status" -eq 0 ] || { echo "curl: status $status"; cat "$scratch/download.log"; return 1; }
    cmp "$scratch/www/ten" "$scratch/got"
}

dead_path() {
    link down
    sleep 3
    link up
}

# Enough loss to make large datagrams look too large for the path.
bad_path() {
    link 'loss 50%'
    sleep 2
    link "loss $LOSS"
}

# The client's only address is replaced by another.
readonly OTHER_ADDRESS=10.71.1.3
moved() {
    ip -n "$client_ns" address flush dev path1
    ip -n "$client_ns" address add "$OTHER_ADDRESS/24" dev path1
}

check 'server killed and restarted: reset, then new transfers' restarted
check 'path dead for 3 s: the transfer continues' goes_on dead_path
check 'half of the packets lost for 2 s: the transfer continues' goes_on bad_path
check "the client's address changed: the transfer continues" goes_on moved
check 'a new download afterwards' small_fetched
check 'the client was never restarted' is_alive "$client_pid"
finish
