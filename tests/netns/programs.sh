#!/usr/bin/env bash
# Unchanged programs over a link that loses 5 % each way: the received data equals the sent data.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
network
program_and_keys
random_file "$scratch/www/five" 5000000
random_file "$scratch/www/small" 100000
start_web
start_server --allow-target "$SERVER_ADDRESS"
start_client
readonly WEB=http://$SERVER_ADDRESS:8000

# fetched NAME CURL_OPTION...
fetched() {
    local name=$1
    shift
    rm -f "$scratch/got"
    fetch "$WEB/$name" "$scratch/got" "$@" && cmp "$scratch/www/$name" "$scratch/got"
}

wget_fetched() {
    on_client env http_proxy="http://$HTTP" wget --quiet --tries=1 --timeout=60 -O "$scratch/wget" "$WEB/five" &&
        cmp "$scratch/www/five" "$scratch/wget"
}

proxychains_fetched() {
    printf 'strict_chain\nproxy_dns\n[ProxyList]\nsocks5 %s\n' "${SOCKS/:/ }" >"$scratch/chains"
    on_client proxychains4 -q -f "$scratch/chains" wget --quiet --tries=1 --timeout=60 -O "$scratch/chained" "$WEB/five" &&
        cmp "$scratch/www/five" "$scratch/chained"
}

# Fifty simultaneous downloads through one client.
many_fetched() {
    local i pids=() wrong=0
    for i in $(seq 50); do
        fetch "$WEB/small" "$scratch/many-$i" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || wrong=$((wrong + 1)); done
    for i in $(seq 50); do cmp "$scratch/www/small" "$scratch/many-$i" || wrong=$((wrong + 1)); done
    [ "$wrong" -eq 0 ] || { echo "$wrong wrong"; return 1; }
}

# The web server's head and body through standard input and output.
connected() {
    printf 'GET /small HTTP/1.0\r\n\r\n' | on_client timeout 30 "$ctcp" connect -q "${remote[@]}" "$SERVER_ADDRESS:8000" \
        >"$scratch/connected" && tail -c 100000 "$scratch/connected" | cmp - "$scratch/www/small"
}

start_sshd() {
    mkdir -p "$scratch/ssh" /run/sshd
    ssh-keygen -q -t ed25519 -N '' -f "$scratch/ssh/host"
    ssh-keygen -q -t ed25519 -N '' -f "$scratch/ssh/user"
    cp "$scratch/ssh/user.pub" "$scratch/ssh/authorized"
    printf '%s\n' 'Port 2222' "ListenAddress $SERVER_ADDRESS" "HostKey $scratch/ssh/host" \
        "AuthorizedKeysFile $scratch/ssh/authorized" 'StrictModes no' 'PidFile none' 'UsePAM no' \
        'PermitRootLogin prohibit-password' >"$scratch/ssh/config"
    background "$server_ns" sshd.log "$(command -v sshd || echo /usr/sbin/sshd)" -D -e -f "$scratch/ssh/config"
    wait_until 10 listens_tcp "$server_ns" 2222 || { cat "$scratch/sshd.log"; return 1; }
    # A script, because rsync and git accept only one word.
    cat >"$scratch/ssh/run" <<SCRIPT
#!/bin/sh
exec ssh -F none -p 2222 -i $scratch/ssh/user -o BatchMode=yes -o LogLevel=ERROR -o StrictHostKeyChecking=no \
    -o UserKnownHostsFile=/dev/null -o ProxyCommand='$ctcp connect -q ${remote[*]} %h:%p' "\$@"
SCRIPT
    chmod 755 "$scratch/ssh/run"
}

ssh_ran() { [ "$(on_client "$scratch/ssh/run" "root@$SERVER_ADDRESS" 'cat; exit 0' <<<'through ssh')" = 'through ssh' ]; }

ssh_status() {
    local status=0
    on_client "$scratch/ssh/run" "root@$SERVER_ADDRESS" 'exit 3' </dev/null || status=$?
    [ "$status" -eq 3 ]
}

rsync_copied() {
    on_client rsync --archive --rsh "$scratch/ssh/run" "root@$SERVER_ADDRESS:$scratch/www/" "$scratch/pulled/" &&
        diff -r "$scratch/www" "$scratch/pulled" &&
        on_client rsync --archive --rsh "$scratch/ssh/run" "$scratch/pulled/" "root@$SERVER_ADDRESS:$scratch/pushed/" &&
        diff -r "$scratch/www" "$scratch/pushed"
}

check 'curl, SOCKS5' fetched five --proxy "socks5h://$SOCKS"
check 'curl, HTTP proxy' fetched five --proxy "http://$HTTP"
check 'curl, HTTP CONNECT' fetched five --proxytunnel --proxy "http://$HTTP"
if command -v wget >/dev/null; then check 'wget, HTTP proxy' wget_fetched; fi
if command -v proxychains4 >/dev/null && command -v wget >/dev/null; then check 'proxychains4' proxychains_fetched; fi
check '50 downloads at once' many_fetched
check 'ctcp connect' connected
if command -v ssh >/dev/null && { command -v sshd >/dev/null || [ -x /usr/sbin/sshd ]; } && start_sshd; then
    check 'ssh through ctcp connect' ssh_ran
    check "ssh's exit status" ssh_status
    if command -v rsync >/dev/null; then check 'rsync there and back' rsync_copied; fi
fi
check 'server and client are still running' is_alive "$server_pid" "$client_pid"
finish
