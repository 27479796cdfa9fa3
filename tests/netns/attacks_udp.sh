#!/usr/bin/env bash
# Attacks on UDP: on associations, on targets, by floods, and on the packets that carry messages. A good client is served beside them.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
network
program_and_keys
link 'rate 200mbit queue 1mb loss 0 delay 2ms'

readonly TOOL=$repository/tests/netns/attacks_udp.py
readonly LOG=$scratch/targets.log
# The target, another one that is allowed, and those of floods. 7009 is forbidden.
readonly TARGET=7007 OTHER=7008 FLOODER=7011 ECHO=7012
# Everything is allowed at this address, and nothing listens there.
readonly VOID=10.98.0.1
# Each process of an attacker has a proxy of its own. All of them have the same key.
readonly BAD_SOCKS=127.0.0.1:1081 SECOND_BAD_SOCKS=127.0.0.1:1082 CONE_SOCKS=127.0.0.1:1083 NARROW_SOCKS=127.0.0.1:1084 MIDDLE_SOCKS=127.0.0.1:1085
readonly CONE_PORT=4443 MIDDLE=127.0.0.1:4434 FORBIDDEN_FORWARD=127.0.0.1:5300 SERVER_METRICS=127.0.0.1:9464 CLIENT_METRICS=127.0.0.1:9465
readonly ASSOCIATIONS_PER_KEY=512 TARGETS_OF_ASSOCIATION=256 MEGABYTES_PER_SECOND=50
# The permitted growth of the server's memory by one kind of flood. Datagrams that wait for names may take 64 kB of each association.
readonly GROWTH_KILOBYTES=32768 GROWTH_BY_NAMES_KILOBYTES=65536

# ---- the network: forbidden addresses that are the server's, and names. A resolver beyond the link says nothing.

trap 'rm -rf "/etc/netns/$server_ns"; rmdir --ignore-fail-on-non-empty /etc/netns; clean_up' EXIT
mkdir -p "/etc/netns/$server_ns"
echo 'nameserver 10.71.1.77' >"/etc/netns/$server_ns/resolv.conf"
printf '%s\n' '127.0.0.1 localhost inside.test' '::ffff:127.0.0.1 mapped.test' '10.99.0.1 private.test' '169.254.169.254 metadata.test' \
    "$SERVER_ADDRESS echo.test" >"/etc/netns/$server_ns/hosts"
on_server sysctl -qw net.ipv6.conf.lo.disable_ipv6=0 # the link has disabled it
for address in 10.98.0.1/32 10.99.0.1/32 169.254.169.254/32 ::1/128 fd99::1/128; do
    ip -n "$server_ns" address replace "$address" dev lo
done
forbidden=("$SERVER_ADDRESS" "$((TARGET + 2))")
for address in 127.0.0.1 127.1.2.3 ::1 10.99.0.1 169.254.169.254 fd99::1; do forbidden+=("$address" "$TARGET"); done
targets=("$SERVER_ADDRESS" "$TARGET" "$SERVER_ADDRESS" "$OTHER" "${forbidden[@]}")

good_client() { on_client python3 "$TOOL" good "${GOOD_SOCKS:-$SOCKS}" echo.test "$ECHO" "$1"; }

# metric SIDE NAME [LABELS]: the value of a metric of this side, `server` or `client`, as an integer
metric() {
    local namespace=$server_ns address=$SERVER_METRICS
    [ "$1" = server ] || namespace=$client_ns address=$CLIENT_METRICS
    ip netns exec "$namespace" curl --silent --noproxy '*' --max-time 5 "http://$address/metrics" |
        awk -v name="$2{side=\"$1\"${3:-}}" '$1 == name { print int($2) }'
}

dropped() { metric "$1" ctcp_proxy_udp_dropped_total ",reason=\"$2\""; }
associations() { metric server ctcp_proxy_udp_associations; }

# counted SIDE REASON LEAST COMMAND...: the command succeeds, and this side counts as many dropped datagrams
counted() {
    local side=$1 reason=$2 least=$3 before after status=0
    shift 3
    before=$(dropped "$side" "$reason")
    "$@" || status=$?
    after=$(dropped "$side" "$reason")
    echo "dropped as '$reason' by the $side: $((after - before))"
    [ "$status" -eq 0 ] && [ $((after - before)) -ge "$least" ]
}

# start_proxy SOCKS KEY SERVER OPTION...: starts another client and sets $pid
start_proxy() {
    local socks=$1 key=$2 server=$3
    shift 3
    background "$client_ns" client.log "$ctcp" client --server "$server" --server-key "$(cat "$scratch/server.pub")" --key "$scratch/$key.key" \
        --socks "$socks" "$@"
    wait_until 10 listens_tcp "$client_ns" "${socks##*:}"
}

rules=()
for port in "$TARGET" "$OTHER" "$FLOODER" "$ECHO"; do rules+=(--allow-target "$SERVER_ADDRESS:$port"); done
start_server "${rules[@]}" --allow-target "$VOID" --client "$(cat "$scratch/stranger.pub")" --metrics "$SERVER_METRICS"
start_proxy "$BAD_SOCKS" stranger "$SERVER_ADDRESS:$SERVER_PORT" --udp-full-cone
start_proxy "$SECOND_BAD_SOCKS" stranger "$SERVER_ADDRESS:$SERVER_PORT"
start_client --metrics "$CLIENT_METRICS" --forward "udp:$FORBIDDEN_FORWARD=127.0.0.1:$TARGET"
background "$server_ns" target.log python3 "$TOOL" target "$LOG" "${targets[@]}"
background "$server_ns" echo.log python3 "$repository/tests/netns/udp.py" echo "$SERVER_ADDRESS" "$ECHO"
wait_until 10 listens_udp "$server_ns" "$ECHO"

# ---- associations and targets

reaches_all() { on_server python3 "$TOOL" reach "$LOG" "${targets[@]}"; }

# answers_only PROXY NAME...: only these targets reach a program that contacted another one
answers_only() {
    local proxy=$1
    shift
    on_client python3 "$TOOL" crowd "$proxy" "$SERVER_ADDRESS" "$TARGET" "$@"
}

no_association_is_left() { [ "$(associations)" = 0 ]; }

start_cone() {
    background "$server_ns" server.log "$ctcp" server --listen "$SERVER_ADDRESS:$CONE_PORT" --key "$scratch/server.key" \
        --client "$(cat "$scratch/client.pub")" "${rules[@]}" --udp-full-cone
    wait_until 10 listens_udp "$server_ns" "$CONE_PORT"
    start_proxy "$CONE_SOCKS" client "$SERVER_ADDRESS:$CONE_PORT" --udp-full-cone
    start_proxy "$NARROW_SOCKS" client "$SERVER_ADDRESS:$CONE_PORT"
}

check 'every target and forbidden address is reached without the proxy' reaches_all
check 'a good client alone' shown good_client 2
check 'a relay serves only its owner' shown counted client sender 140 \
    on_client python3 "$TOOL" senders "$SOCKS" "$SERVER_ADDRESS" "$TARGET" "$LOG"
check 'forbidden targets see nothing' shown counted server forbidden 40 \
    on_client python3 "$TOOL" forbidden "$SOCKS" "$TARGET" "$LOG" "$SERVER_ADDRESS" "::ffff:$SERVER_ADDRESS" echo.test "=$SERVER_ADDRESS"
check 'a forward to a forbidden target refuses' on_client python3 "$TOOL" refused "$FORBIDDEN_FORWARD" "$LOG"
check 'only a contacted target answers' shown counted server unasked 9 answers_only "$SOCKS"
check 'the same if only the client asks for more' shown counted server unasked 9 answers_only "$BAD_SOCKS"
start_cone
check 'the same if only the server allows more' shown answers_only "$NARROW_SOCKS"
check 'with full cone, only allowed addresses answer' shown answers_only "$CONE_SOCKS" "$SERVER_ADDRESS $OTHER"
check 'a full table of targets' shown counted server unasked 1 \
    on_client python3 "$TOOL" table "$SOCKS" "$SERVER_ADDRESS" "$TARGET" "$VOID" "$TARGETS_OF_ASSOCIATION"
check 'malformed datagrams' shown counted client malformed 20 counted client fragment 5 \
    on_client python3 "$TOOL" malformed "$SOCKS" "$SERVER_ADDRESS" "$TARGET" "$LOG"
check 'the end of the TCP connection closes the relay' shown on_client python3 "$TOOL" closing "$SOCKS" "$SERVER_ADDRESS" "$TARGET"
check 'the server has no association left' wait_until 3 no_association_is_left

# ---- floods

# beside GROWTH COMMAND...: runs a flood on the client's side while the good client echoes
beside() {
    local growth=$1 before after flood status=0
    shift
    before=$(resident_kilobytes "$server_pid")
    : >"$scratch/flood.log"
    background "$client_ns" flood.log python3 "$TOOL" "$@"
    flood=$pid
    sleep 1.5
    good_client 2.5 || status=1
    is_alive "$flood" || { echo 'the flood has ended'; status=1; }
    after=$(resident_kilobytes "$server_pid")
    echo "open associations: $(associations); resident: $before kB before, $after kB after"
    stop "$flood" TERM
    cat "$scratch/flood.log"
    [ $((after - before)) -lt "$growth" ] && return "$status"
}

# One key takes all associations that it may have. The server writes that to its log.
associations_are_bounded() {
    beside "$GROWTH_KILOBYTES" associations "$ASSOCIATIONS_PER_KEY" "$SERVER_ADDRESS" "$ECHO" "$BAD_SOCKS" "$SECOND_BAD_SOCKS" || return 1
    grep -q 'this client has too many UDP associations' "$scratch/server.log"
}

# A machine that cannot send several times the rate of a key does not exceed it at the server either.
answers_are_bounded() {
    local before excess megabytes
    before=$(dropped server rate)
    background "$server_ns" flooder.log python3 "$TOOL" flooder "$SERVER_ADDRESS" "$FLOODER"
    beside "$GROWTH_KILOBYTES" downstream "$BAD_SOCKS" "$SERVER_ADDRESS" "$FLOODER" || return 1
    excess=$(($(dropped server rate) - before))
    cat "$scratch/flooder.log"
    echo "dropped as 'rate' by the server: $excess"
    megabytes=$(awk '{ print int($5) }' "$scratch/flooder.log")
    [ "$excess" -ge 100 ] && return
    [ "$megabytes" -lt $((5 * MEGABYTES_PER_SECOND)) ] && echo 'SKIP the rate of answers: this machine is too busy to exceed it'
}

is_calm() { [ "$(associations)" -le 1 ]; }

check 'a flood of associations' shown associations_are_bounded
wait_until 5 is_calm || true
check 'a flood of associations that end at once' shown beside "$GROWTH_KILOBYTES" churn "$BAD_SOCKS" "$SERVER_ADDRESS" "$ECHO"
wait_until 5 is_calm || true
check 'a flood of targets' shown beside "$GROWTH_KILOBYTES" targets "$BAD_SOCKS" "$VOID"
check 'a flood of datagrams' shown beside "$GROWTH_KILOBYTES" upstream "$BAD_SOCKS" "$SERVER_ADDRESS" "$ECHO"
check 'a flood of answers' shown counted server unasked 100 answers_are_bounded

# ---- packets

# The messages of a client pass a process that records their packets, and repeats them.
packets_flood() {
    local before after middle client status=0
    background "$client_ns" middle.log python3 "$TOOL" middle "$MIDDLE" "$SERVER_ADDRESS:$SERVER_PORT" "$scratch/capture"
    middle=$pid
    wait_until 10 listens_udp "$client_ns" "${MIDDLE##*:}"
    start_proxy "$MIDDLE_SOCKS" client "$MIDDLE"
    client=$pid
    GOOD_SOCKS=$MIDDLE_SOCKS good_client 1 || return 1
    before=$(resident_kilobytes "$server_pid")
    background "$server_ns" packets.log python3 "$TOOL" packets "$SERVER_ADDRESS:$SERVER_PORT" "$scratch/capture" 11
    kill -USR1 "$middle"
    GOOD_SOCKS=$MIDDLE_SOCKS good_client 10 || status=1
    wait "$pid" || status=1
    cat "$scratch/packets.log"
    after=$(resident_kilobytes "$server_pid")
    kill -TERM "$middle"
    wait "$middle" || status=1
    cat "$scratch/middle.log"
    echo "resident: $before kB before, $after kB after"
    stop "$client"
    [ $((after - before)) -lt "$GROWTH_KILOBYTES" ] && return "$status"
}

check 'random and replayed packets' shown packets_flood
# The last flood, because the memory that it frees would hide what others take.
check 'a flood of names without an answer' shown counted server full 100 \
    beside "$GROWTH_BY_NAMES_KILOBYTES" names "$BAD_SOCKS" "$SECOND_BAD_SOCKS"
check 'a good client in the end' shown good_client 1
check 'server and client are still running' is_alive "$server_pid" "$client_pid"
finish
