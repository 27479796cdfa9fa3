#!/usr/bin/env bash
# Attempts by a client, a web page or another user of the machine to do what nobody intended to allow.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
network
program_and_keys
link 'rate 200mbit queue 1mb loss 0'
mkdir "$scratch/served" "$scratch/secret"
mount -t tmpfs -o size=40m none "$scratch/served" || skip 'no tmpfs can be mounted'
mounts+=("$scratch/served")
echo secret >"$scratch/secret/index.html"
echo there >"$scratch/served/there"
random_file "$scratch/large" 12000000
random_file "$scratch/small" 5000000
{ cat "$scratch/client.pub"; echo; } >"$scratch/clients"

# A service that only the server's own machine should reach.
background "$server_ns" secret.log python3 -m http.server --bind 127.0.0.1 --directory "$scratch/secret" 8000
wait_until 10 listens_tcp "$server_ns" 8000 || { cat "$scratch/secret.log"; exit 1; }
background "$server_ns" server.log "$ctcp" server --listen "$SERVER_ADDRESS:$SERVER_PORT" --key "$scratch/server.key" \
    --clients "$scratch/clients" --allow-target 0.0.0.0/0 --files "$scratch/served" --files-write
server_pid=$pid
wait_until 10 listens_udp "$server_ns" "$SERVER_PORT" || { cat "$scratch/server.log"; exit 1; }
start_client

wide_rule() {
    ! fetch http://127.0.0.1:8000/ "$scratch/stolen" --fail --max-time 10 --proxy "http://$HTTP" || { cat "$scratch/stolen"; return 1; }
}

# A page of evil.example, whose name resolves to this machine, sends a request with its own name.
rebinding() {
    local status
    status=$(on_client curl --silent --output /dev/null --write-out '%{http_code}' --header "Host: evil.example:${HTTP##*:}" "http://$HTTP/proxy.pac")
    echo "status $status"
    [ "$status" != 200 ]
}

readable_key() {
    cp "$scratch/client.key" "$scratch/readable.key"
    chmod 644 "$scratch/readable.key"
    ! "$ctcp" pubkey "$scratch/readable.key"
}

# Ten aborted uploads leave more than the disk holds; then one that fits must still succeed.
leftovers() {
    local number
    for number in {1..10}; do
        on_client timeout --signal=INT 0.4 "$ctcp" put -q "${remote[@]}" "$scratch/large" "never-$number" || true
    done
    du -sm "$scratch/served"
    on_client timeout 30 "$ctcp" put -q "${remote[@]}" "$scratch/small" small && cmp "$scratch/small" "$scratch/served/small"
}

# Two seconds after its key was removed from the file, the client is disconnected and cannot reconnect.
removed() {
    : >"$scratch/clients"
    sleep 2
    ! on_client timeout 10 "$ctcp" get -q "${remote[@]}" there -o "$scratch/after" || { echo 'a new connection is served'; return 1; }
    grep "no longer on the server's list" "$scratch/client.log"
}

check 'a wide rule does not open loopback' wide_rule
check 'a web page cannot read the pages of the client' rebinding
check 'a key that all users can read is refused' readable_key
check 'aborted uploads do not fill the disk' leftovers
check 'a client removed from the list is disconnected' removed
finish
