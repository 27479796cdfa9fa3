# Common parts of the tests in network namespaces. Scripts source it; it is not run itself.
#
#   server side                                            client side
#   10.71.1.1  path1 --- `ctcp-lab testbed link` --- path1  10.71.1.2
#   web server, ctcp server                                 ctcp client, curl, ...
#
# The emulator of the testbed carries the packets: rate, queue, random loss and delay are the same both ways.
#
# A script prints a line for each check and ends with `finish`: status 0 if all passed, 1 if one failed, 77 (with the
# reason) if it cannot run here. Everything it starts and creates is removed at its end.

set -euo pipefail

readonly SERVER_ADDRESS=10.71.1.1 CLIENT_ADDRESS=10.71.1.2 SERVER_PORT=4433
readonly SOCKS=127.0.0.1:1080 HTTP=127.0.0.1:3128
readonly LOSS=0.05 RATE=25mbit QUEUE=64kb

script_name=$(basename "$0" .sh)
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
server_ns=ctcp-$$-server client_ns=ctcp-$$-client
scratch=
background_pids=()
mounts=()
failures=0

skip() {
    printf 'SKIP %s: %s\n' "$script_name" "$1"
    exit 77
}

# need COMMAND...: skips the script if one is missing
need() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null 2>&1 || skip "$command is not installed"
    done
}

clean_up() {
    local pid directory
    exec 2>/dev/null # suppresses the shell's message about each killed process
    for pid in "${background_pids[@]}"; do
        kill -KILL "$pid" || true
    done
    wait || true
    for directory in "${mounts[@]}"; do
        umount "$directory" || true
    done
    ip netns del "$server_ns" || true
    ip netns del "$client_ns" || true
    [ -z "$scratch" ] || rm -rf "$scratch"
}

on_server() { ip netns exec "$server_ns" "$@"; }
on_client() { ip netns exec "$client_ns" "$@"; }

# Creates the two namespaces and the bad link between them; $PATHS of them if the script sets it. The second is 10.71.2.1 and 10.71.2.2.
network() {
    local answer path
    [ "$(id -u)" -eq 0 ] || skip 'network namespaces need root'
    [ -c /dev/net/tun ] || skip 'the link needs /dev/net/tun'
    need ip
    laboratory
    scratch=$(mktemp -d)
    export XDG_CONFIG_HOME=$scratch/config # ignores the configuration of the user
    chmod 755 "$scratch"
    trap clean_up EXIT
    trap 'exit 1' INT TERM HUP
    ip netns add "$server_ns" 2>/dev/null && ip netns add "$client_ns" || skip 'this kernel or container does not allow network namespaces'
    ip -n "$server_ns" link set lo up
    ip -n "$client_ns" link set lo up
    coproc LINK { exec "$lab" testbed link "$server_ns" "$client_ns" "${PATHS:-1}" 2>&1; }
    background_pids+=("$LINK_PID")
    for ((path = 1; path <= ${PATHS:-1}; path++)); do
        read -r -t 10 -u "${LINK[0]}" answer && [[ $answer = *"10.71.$path.1"* ]] || skip "there is no link: $answer"
    done
    link "rate $RATE queue $QUEUE loss $LOSS"
}

# link CHANGES: changes the link, both ways, such as `link 'rate 100mbit queue 1mb delay 10ms'`; `link '2 down'` is for the second
link() {
    local answer=
    echo "$1" >&"${LINK[1]}"
    read -r -t 10 -u "${LINK[0]}" answer && [ "$answer" = ok ] || { echo "the link: $answer" >&2; exit 1; }
}

# background SIDE LOG COMMAND...: starts a process and sets $pid
background() {
    local namespace=$1 log=$scratch/$2
    shift 2
    ip netns exec "$namespace" "$@" >>"$log" 2>&1 </dev/null &
    pid=$!
    background_pids+=("$pid")
}

# stop PID [SIGNAL]
stop() {
    kill "-${2:-KILL}" "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
}

# resident_kilobytes PID
resident_kilobytes() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

# wait_until SECONDS COMMAND...: repeats the command until it succeeds; fails after the time
wait_until() {
    local end=$(($(date +%s%N) + $1 * 1000000000))
    shift
    until "$@"; do
        [ "$(date +%s%N)" -lt "$end" ] || return 1
        sleep 0.02
    done
}

# The current time in milliseconds.
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

listens_udp() { ip netns exec "$1" ss -Hlun "sport = :$2" | grep -q .; }
listens_tcp() { ip netns exec "$1" ss -Hltn "sport = :$2" | grep -q .; }

# Finds or builds the laboratory's binary: $lab
laboratory() {
    lab=${LAB:-$repository/target/release/ctcp-lab}
    [ -x "$lab" ] || (cd "$repository" && cargo build --release --package ctcp-lab) || exit 1
}

# Finds or builds the binary under test, and creates the keys.
program_and_keys() {
    local name
    ctcp=${CTCP:-$repository/target/release/ctcp}
    if [ ! -x "$ctcp" ]; then
        [ -z "${CTCP:-}" ] || { echo "$CTCP is not a program" >&2; exit 1; }
        (cd "$repository" && cargo build --release --package ctcp-cli) || exit 1
    fi
    for name in server client stranger; do
        "$ctcp" keygen --out "$scratch/$name.key" >"$scratch/$name.pub"
    done
    remote=(--server "$SERVER_ADDRESS:$SERVER_PORT" --server-key "$(cat "$scratch/server.pub")" --key "$scratch/client.key")
}

# start_server OPTION...: starts the reverse proxy and sets $server_pid
start_server() {
    background "$server_ns" server.log "$ctcp" server --listen "$SERVER_ADDRESS:$SERVER_PORT" --key "$scratch/server.key" \
        --client "$(cat "$scratch/client.pub")" "$@"
    server_pid=$pid
    wait_until 10 listens_udp "$server_ns" "$SERVER_PORT" || { cat "$scratch/server.log"; exit 1; }
}

# start_client OPTION...: starts the forward proxy with SOCKS5 and HTTP, and sets $client_pid
start_client() {
    background "$client_ns" client.log "$ctcp" client "${remote[@]}" --socks "$SOCKS" --http "$HTTP" "$@"
    client_pid=$pid
    wait_until 10 listens_tcp "$client_ns" "${HTTP##*:}" || { cat "$scratch/client.log"; exit 1; }
}

# start_web: serves the files of $scratch/www on port 8000 of the server's address
start_web() {
    need python3
    mkdir -p "$scratch/www"
    background "$server_ns" web.log python3 -m http.server --bind "$SERVER_ADDRESS" --directory "$scratch/www" 8000
    wait_until 10 listens_tcp "$server_ns" 8000 || { cat "$scratch/web.log"; exit 1; }
}

# random_file NAME BYTES
random_file() {
    mkdir -p "$(dirname "$1")"
    head -c "$2" /dev/urandom >"$1"
}

# fetch URL OUTPUT CURL_OPTION...: runs curl in the client's namespace, by default through SOCKS5
fetch() {
    local url=$1 output=$2
    shift 2
    [ $# -gt 0 ] || set -- --proxy "socks5h://$SOCKS"
    on_client curl --silent --show-error --max-time "${CURL_SECONDS:-60}" --output "$output" "$@" "$url"
}

# check NAME COMMAND...: passes if the command succeeds. Its output is shown only on failure.
check() {
    local name=$1 begin end
    shift
    begin=$(milliseconds)
    if "$@" >"$scratch/check" 2>&1; then
        end=$(milliseconds)
        printf 'PASS %s: %s (%d ms)\n' "$script_name" "$name" $((end - begin))
    else
        printf 'FAIL %s: %s\n' "$script_name" "$name"
        tail -n 5 "$scratch/check" | sed 's/^/     /'
        failures=$((failures + 1))
    fi
}

# shown COMMAND...: for `check` of measurements: shows the output even if the command succeeds
exec 3>&1
shown() {
    local status=0
    "$@" >"$scratch/shown" 2>&1 || status=$?
    sed 's/^/     /' "$scratch/shown" >&3
    return $status
}

# ends_with STATUS TEXT COMMAND...: the command must exit with this status and print TEXT (a pattern of grep)
ends_with() {
    local status=$1 text=$2 got=0
    shift 2
    "$@" >"$scratch/said" 2>&1 || got=$?
    cat "$scratch/said"
    [ "$got" -eq "$status" ] || { echo "status $got, not $status"; return 1; }
    grep -qi -- "$text" "$scratch/said" || { echo "the output lacks: $text"; return 1; }
}

is_alive() {
    local process
    for process in "$@"; do kill -0 "$process" || return 1; done
}

finish() {
    if [ "$failures" -gt 0 ]; then
        for log in server client; do
            [ ! -s "$scratch/$log.log" ] || { echo "last lines of the $log:"; tail -n 5 "$scratch/$log.log"; }
        done
        exit 1
    fi
    exit 0
}
