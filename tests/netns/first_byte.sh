#!/usr/bin/env bash
# How long a download of 10 KB through a running client takes, in round trips, by each kind of proxy: the first data
# leaves with the request, without waiting for the server's connection to the target.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly RTT=200

need python3
network
program_and_keys
link "loss 0 rate 50mbit queue 500kb delay $((RTT / 2))ms"
start_web
random_file "$scratch/www/small" 10000
start_server --allow-target "$SERVER_ADDRESS:8000"

# median_of_5 CURL_OPTION...: the time in thousandths of a round trip
median_of_5() {
    local attempt
    for attempt in {1..5}; do
        on_client curl --silent --show-error --max-time 20 --output "$scratch/small" --write-out '%{time_total}\n' "$@" \
            "http://$SERVER_ADDRESS:8000/small" || return 1
        cmp "$scratch/small" "$scratch/www/small" || return 1
    done | sort -n | awk -v rtt="$RTT" '{ times[NR] = $1 } END { printf "%d\n", times[3] * 1e6 / rtt }'
}

# takes LEAST MOST CURL_OPTION...: thousandths of a round trip
takes() {
    local least=$1 most=$2 time
    shift 2
    time=$(median_of_5 "$@") || return 1
    printf '%d.%03d round trips\n' $((time / 1000)) $((time % 1000))
    [ "$time" -ge "$least" ] && [ "$time" -le "$most" ]
}

start_client
check 'a connection' fetch "http://$SERVER_ADDRESS:8000/small" "$scratch/small"
check 'SOCKS5' shown takes 1000 1400 --proxy "socks5h://$SOCKS"
check 'CONNECT' shown takes 1000 1400 --proxytunnel --proxy "http://$HTTP"
check 'plain HTTP' shown takes 1000 1400 --proxy "http://$HTTP"
stop "$client_pid"
start_client --wait-for-targets
check 'a connection that waits for targets' fetch "http://$SERVER_ADDRESS:8000/small" "$scratch/small"
check 'SOCKS5 that waits' shown takes 1900 2400 --proxy "socks5h://$SOCKS"
check 'CONNECT that waits' shown takes 1900 2400 --proxytunnel --proxy "http://$HTTP"
check 'plain HTTP that waits' shown takes 1900 2400 --proxy "http://$HTTP"
finish
