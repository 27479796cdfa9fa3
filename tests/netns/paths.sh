#!/usr/bin/env bash
# Several paths at once: both carry the transfer, each may fail and return, and a client with one path changes its address.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly PATHS=2
# The aim is two round trips of the slower path and 200 ms, that is 320. A busy machine adds to it.
readonly STALL_MILLISECONDS=${STALL_MILLISECONDS:-1500}
# For how long a path is cut.
readonly OUTAGE_SECONDS=${OUTAGE_SECONDS:-1.5}
# An idle machine sees 40 ms, as without the second path.
readonly HARMLESS_MILLISECONDS=400
# Changes of the client's address during a transfer, and the seconds between two.
readonly MOVES=${MOVES:-20} MOVE_SECONDS=${MOVE_SECONDS:-0.3}
readonly MOVING_SECONDS=$(awk "BEGIN { print int(60 + 2 * $MOVES * $MOVE_SECONDS) }")
# For how long the client's machine sleeps; longer than 30 s exceeds the time after which a silent peer is given up.
readonly SLEEP_SECONDS=${SLEEP_SECONDS:-5}
readonly CURL_SECONDS=$((60 + SLEEP_SECONDS))

need curl python3
network
link '1 rate 20mbit queue 100kb loss 0 delay 10ms'
link '2 rate 10mbit queue 100kb loss 0 delay 30ms'
program_and_keys
random_file "$scratch/www/twenty" 20000000
# More than both paths carry while each is cut.
random_file "$scratch/www/long" "$(awk "BEGIN { print 3750000 * (8 + 2 * $OUTAGE_SECONDS) }")"
# More than one path carries in all moves.
random_file "$scratch/www/moved" "$(awk "BEGIN { print 5e6 + 2.5e6 * $MOVES * $MOVE_SECONDS }")"
start_web
mkdir -p "$scratch/served"
start_server --allow-target "$SERVER_ADDRESS" --files "$scratch/served" --files-write
readonly WEB=http://$SERVER_ADDRESS:8000

# The second path leads to the same address of the server.
route() { ip -n "$client_ns" route replace "$SERVER_ADDRESS" dev path2 src 10.71.2.2 metric 1000; }
route

received() { on_client cat "/sys/class/net/$1/statistics/rx_bytes"; }

restart_client() {
    [ -z "${client_pid:-}" ] || stop "$client_pid"
    start_client "$@"
}

# carried INTERFACE: bytes that arrive in a second
carried() {
    local before
    before=$(received "$1")
    sleep 1
    echo $(($(received "$1") - before))
}

# Copies standard input. Prints the longest time without a byte, in milliseconds, after the first.
stalls() {
    python3 -c '
import os, sys, time
longest, last = 0, None
while data := os.read(0, 65536):
    now = time.monotonic()
    longest, last = max(longest, now - (last or now)), now
    sys.stdout.buffer.write(data)
print(int(longest * 1000), file=sys.stderr)'
}

# Prints the longest time in which the files of a folder do not grow, in milliseconds, until the process PID ends.
growth_stalls() {
    python3 -c '
import os, sys, time
folder, pid = sys.argv[1], int(sys.argv[2])
longest, last, size = 0, None, 0
while os.path.exists(f"/proc/{pid}"):
    now = time.monotonic()
    try:
        found = sum(entry.stat().st_size for entry in os.scandir(folder))
    except FileNotFoundError:
        continue # renamed meanwhile
    if found != size:
        longest, last, size = max(longest, now - (last or now)), now, found
    time.sleep(0.005)
print(int(longest * 1000))' "$@"
}

# begin_download [FILE]: starts a download in the background: $download_pid, $download
begin_download() {
    download=${1:-twenty}
    rm -f "$scratch/got"
    (fetch "$WEB/$download" - 2>"$scratch/curl" | stalls >"$scratch/got" 2>"$scratch/stall") &
    download_pid=$!
    background_pids+=("$download_pid")
    wait_until 20 test -s "$scratch/got"
}

# end_download [MILLISECONDS]: the download is complete, and never stalled for longer
end_download() {
    wait "$download_pid" || true
    cat "$scratch/curl"
    cmp "$scratch/www/$download" "$scratch/got" || return 1
    echo "longest stall: $(cat "$scratch/stall") ms"
    [ "$(cat "$scratch/stall")" -le "${1:-$STALL_MILLISECONDS}" ]
}

# Each path carries at least this many percent of a download.
both_carry() {
    local first second
    first=$(received path1) second=$(received path2)
    begin_download && end_download || return 1
    first=$(($(received path1) - first)) second=$(($(received path2) - second))
    echo "first path: $first bytes, second: $second"
    [ "$first" -ge $((20000000 * $1 / 100)) ] && [ "$second" -ge $((20000000 * $1 / 100)) ]
}

# One path is cut and returns, then the other. In the third second after its return each carries nearly as much as before.
each_path_fails() {
    local number before after
    begin_download long || return 1
    sleep 1
    for number in 1 2; do
        before=$(carried "path$number")
        link "$number down"
        sleep "$OUTAGE_SECONDS"
        link "$number up"
        sleep 2
        after=$(carried "path$number")
        echo "path $number: $before bytes in the second before, $after in the third second after"
        [ $((after * 100)) -ge $((before * 80)) ] || { echo 'it carries less than before'; return 1; }
    done
    end_download
}

# The connection begins over the second interface while the first one is dead.
first_is_dead() {
    local began took
    link '1 down'
    restart_client "${both[@]}"
    began=$(milliseconds)
    begin_download || { link '1 up'; return 1; }
    took=$(($(milliseconds) - began))
    link '1 up'
    echo "first byte after $took ms"
    end_download && [ "$took" -le 4000 ]
}

# An interface loses its address, as when it leaves its network, and has one again.
interface_leaves_and_returns() {
    local before
    begin_download || return 1
    sleep 0.5
    ip -n "$client_ns" address flush dev path1
    sleep 1.5
    ip -n "$client_ns" address add "$CLIENT_ADDRESS/24" dev path1
    ip -n "$client_ns" route replace "$SERVER_ADDRESS" dev path1 src "$CLIENT_ADDRESS"
    end_download || return 1
    before=$(received path1)
    begin_download && end_download || return 1
    [ $(($(received path1) - before)) -ge 4000000 ] || { echo 'the interface is not used again'; return 1; }
}

# An interface is removed and created again with the same address. The client only notices that its socket has gone silent.
interface_is_replaced() {
    local before
    direct_interface
    restart_client --path path1 --path direct
    begin_download || return 1
    before=$(received direct)
    sleep 0.3
    kill -STOP "$client_pid"
    ip -n "$client_ns" link del direct
    direct_interface
    kill -CONT "$client_pid"
    end_download || return 1
    echo "the new interface: $(received direct) bytes, the old one: at least $before"
    [ "$before" -ge 100000 ] && [ "$(received direct)" -ge 1000000 ]
}

# A cable of 10 Mbit/s to the server, beside the two links.
direct_interface() {
    ip link add direct netns "$client_ns" type veth peer name direct netns "$server_ns"
    ip -n "$server_ns" address add 10.71.3.1/24 dev direct
    ip -n "$server_ns" link set direct up
    ip -n "$client_ns" address add 10.71.3.2/24 dev direct
    ip -n "$client_ns" link set direct up
    ip -n "$client_ns" route replace "$SERVER_ADDRESS" via 10.71.3.1 dev direct src 10.71.3.2 metric 2000
    on_server tc qdisc add dev direct root tbf rate 10mbit burst 20kb latency 50ms
}

# A bad path that is added makes the download no slower (15 % is allowed for a busy machine).
third_is_harmless() {
    local before with
    link '2 rate 300kbit queue 20kb loss 30% delay 400ms'
    restart_client
    before=$(milliseconds) && begin_download && end_download || return 1
    before=$(($(milliseconds) - before))
    restart_client --path path1 --path path2
    with=$(milliseconds) && begin_download && end_download "$HARMLESS_MILLISECONDS" || return 1
    with=$(($(milliseconds) - with))
    echo "without: $before ms, with: $with ms"
    [ $((with * 100)) -le $((before * 115)) ]
}

# Changes the address of the first path again and again until the process ends. Without promotion, the kernel would remove the new address
# together with the old one.
keep_moving() {
    local move
    on_client sysctl -qw net.ipv4.conf.all.promote_secondaries=1 net.ipv4.conf.path1.promote_secondaries=1
    for ((move = 0; move < MOVES; move++)); do
        sleep "$MOVE_SECONDS"
        kill -0 "$1" 2>/dev/null || break
        ip -n "$client_ns" address add "10.71.1.$((move % 2 + 3))/24" dev path1
        ip -n "$client_ns" address del "10.71.1.$(((move + 1) % 2 + 3))/24" dev path1 2>/dev/null || ip -n "$client_ns" address del "$CLIENT_ADDRESS/24" dev path1 2>/dev/null
        ip -n "$client_ns" route replace "$SERVER_ADDRESS" dev path1
    done
    echo "$move changes of address"
    [ "$move" -ge $((MOVES / 2)) ] || { echo 'the transfer was too short'; return 1; }
}

moving_download() {
    begin_download moved || return 1
    keep_moving "$download_pid" && end_download
}

moving_upload() {
    local upload_pid stall
    rm -f "$scratch"/served/*
    on_client timeout "$MOVING_SECONDS" "$ctcp" put -q "${remote[@]}" "$scratch/www/moved" >"$scratch/put" 2>&1 &
    upload_pid=$!
    background_pids+=("$upload_pid")
    growth_stalls "$scratch/served" "$upload_pid" >"$scratch/stall" &
    background_pids+=("$!")
    stall=$!
    keep_moving "$upload_pid" || return 1
    wait "$upload_pid" || { cat "$scratch/put"; return 1; }
    wait "$stall"
    cmp "$scratch/www/moved" "$scratch/served/moved" || return 1
    echo "longest stall: $(cat "$scratch/stall") ms"
    [ "$(cat "$scratch/stall")" -le "$STALL_MILLISECONDS" ]
}

# The client's machine sleeps during a download and wakes with another address.
sleeping_download() {
    begin_download || return 1
    sleep 1
    kill -STOP "$client_pid"
    ip -n "$client_ns" address flush dev path1
    ip -n "$client_ns" address add 10.71.1.9/24 dev path1
    ip -n "$client_ns" route replace "$SERVER_ADDRESS" dev path1
    sleep "$SLEEP_SECONDS"
    kill -CONT "$client_pid"
    end_download $((SLEEP_SECONDS * 1000 + STALL_MILLISECONDS))
}

# Eight seconds without a transfer, while the first interface is dead.
page_says_connected() {
    link '1 down'
    local second
    for second in $(seq 8); do
        sleep 1
        on_client curl -s "http://$HTTP/" | grep -q 'Connected to the server' || {
            echo "not after $second s"
            return 1
        }
    done
}

gone_clients() { grep -c 'a client is gone' "$scratch/server.log" || true; }

# The first interface is still dead when the client ends.
client_says_that_it_ends() {
    local before
    before=$(gone_clients)
    stop "$client_pid" INT
    wait_until 5 more_are_gone "$before"
}

more_are_gone() { [ "$(gone_clients)" -gt "$1" ]; }

both=(--path path1 --path path2)
restart_client "${both[@]}"
check 'two paths: both carry the download' shown both_carry 25
check 'each path fails and returns in a download' shown each_path_fails
check 'a dead first interface delays the connection by little' shown first_is_dead
check 'an interface loses its address and has one again' shown interface_leaves_and_returns
check 'an interface is removed and created again' shown interface_is_replaced
restart_client "${both[@]}"
check 'both carry a download' shown both_carry 25
check 'the first is dead: the status page says connected' shown page_says_connected
check 'the first is dead: the server learns that the client ends' client_says_that_it_ends
link '1 up'
ip -n "$client_ns" link del direct
restart_client --path auto
check 'with auto both carry the download' shown both_carry 25
restart_client "--path=$CLIENT_ADDRESS" --path=nosuch0
check 'an interface that does not exist: the other carries the download' begin_download
check 'and it is complete' shown end_download
check 'the log names the interface' grep -q nosuch0 "$scratch/client.log"
check 'a wrong name is a wrong option' ends_with 2 'neither an address nor the name of an interface' \
    "$ctcp" client "${remote[@]}" --socks "$SOCKS" --path 'wlan 0'
check 'a bad second path is harmless' shown third_is_harmless
restart_client
check 'the address of a client changes during a download' shown moving_download
check 'the address of a client changes during an upload' shown moving_upload
check 'a client sleeps during a download and wakes with another address' shown sleeping_download
check 'the server was never restarted' is_alive "$server_pid"
finish
