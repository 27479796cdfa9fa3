#!/usr/bin/env bash
# A mix of transfers for a while: `soak.sh SECONDS` or SOAK_SECONDS; by default a short one.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need curl python3
seconds=${1:-${SOAK_SECONDS:-25}}
network
program_and_keys
link 'loss 10% delay 10ms'
for place in www served; do
    mkdir -p "$scratch/$place"
done
random_file "$scratch/www/a" 300000
random_file "$scratch/www/b" 3000000
random_file "$scratch/www/c" 12000000
cp "$scratch"/www/* "$scratch/served"
start_web
start_server --allow-target "$SERVER_ADDRESS:8000" --files "$scratch/served" --files-write
on_client python3 "$repository/tests/netns/soak.py" "$seconds" "$server_pid" "$scratch" "http://$SERVER_ADDRESS:8000" \
    "$ctcp" "${remote[@]}" || failures=1
finish
