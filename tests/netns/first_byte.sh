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
stop "$client_pid"

# visit LEAST MOST TICKET CURL_OPTION...: thousandths of a round trip from the start of a client, which keeps tickets in the
# file TICKET, until its first request is answered
visit() {
    local least=$1 most=$2 ticket=$3 begin time
    shift 3
    begin=$(milliseconds)
    start_client --ticket-file "$ticket"
    on_client curl --silent --show-error --max-time 20 --output "$scratch/small" "$@" \
        "http://$SERVER_ADDRESS:8000/small" || return 1
    time=$((($(milliseconds) - begin) * 1000 / VISIT_RTT))
    cmp "$scratch/small" "$scratch/www/small" || return 1
    sleep 1
    stop "$client_pid"
    printf '%d.%03d round trips with the start of the client\n' $((time / 1000)) $((time % 1000))
    [ "$time" -ge "$least" ] && [ "$time" -le "$most" ]
}

# So long that the start of a process hardly counts.
readonly VISIT_RTT=600
link "delay $((VISIT_RTT / 2))ms"
for way in "SOCKS5 --proxy socks5h://$SOCKS" "CONNECT --proxytunnel --proxy http://$HTTP" "plain --proxy http://$HTTP"; do
    read -r name options <<<"$way"
    read -ra options <<<"$options"
    check "$name, a first visit" shown visit 2000 2500 "$scratch/$name" "${options[@]}"
    cp "$scratch/$name" "$scratch/spent"
    check "$name, a return with a ticket" shown visit 1000 1500 "$scratch/$name" "${options[@]}"
    check "$name, another return" shown visit 1000 1500 "$scratch/$name" "${options[@]}"
    check "$name, a spent ticket" shown visit 2000 2500 "$scratch/spent" "${options[@]}"
done
finish
