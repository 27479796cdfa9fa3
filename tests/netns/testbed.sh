#!/usr/bin/env bash
# `ctcp-lab testbed`: the emulator follows its plan, and an ended run leaves nothing behind.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip 'the testbed needs root'
[ -c /dev/net/tun ] || skip 'the testbed needs /dev/net/tun'
need ip setpriv chrt python3
scratch=$(mktemp -d)
trap clean_up EXIT
trap 'exit 1' INT TERM HUP
laboratory
mkdir "$scratch/tmp"
# The keys of our own peer are in this folder, which identifies its processes by their command lines.
export TMPDIR=$scratch/tmp

# All checks must pass except those of lateness, which a busy machine may fail. It skips what it could not measure; at
# least two of the other checks must have a value.
validates() {
    "$lab" testbed validate --quick --json --out "$scratch/out" >"$scratch/result" || [ $? -eq 1 ]
    python3 - "$scratch/result" <<'PYTHON'
import json, sys
(result,) = json.load(open(sys.argv[1]))["results"]
busy = ("lateness", "error", "percentile", "too late")
others = [check for check in result["checks"] if not any(word in check["name"] for word in busy)]
wrong = [check for check in others if not check["pass"]]
measured = [check for check in others if check["got"] is not None]
assert len(measured) >= 2, "the machine was too busy to measure"
assert len(result["checks"]) >= 8 and result["testbed"]["peers"]["TCP Cubic"]["version"].startswith("Linux")
print(*wrong, sep="\n")
sys.exit(bool(wrong))
PYTHON
}

runs() { pgrep -f -- "--key $scratch/tmp/" >/dev/null; }
has_ended() { ! runs; }

# ended_by SIGNAL STATUS: sends the signal during a download through our own processes
ended_by() {
    local got=0
    "$lab" testbed ctcp-fig3a --quick --out "$scratch/out" >"$scratch/said" 2>&1 &
    local testbed=$!
    background_pids+=("$testbed")
    wait_until 20 runs || { cat "$scratch/said"; return 1; }
    sleep 1
    kill "-$1" "$testbed"
    wait "$testbed" 2>/dev/null || got=$?
    cat "$scratch/said"
    [ "$got" -eq "$2" ] || { echo "status $got, not $2"; return 1; }
    wait_until 5 has_ended || { echo 'processes are left'; return 1; }
    [ -z "$(ls "$TMPDIR")" ] || { echo 'files are left'; return 1; }
    [ -z "$(ip -o link show type tun)" ] || { echo 'devices are left'; return 1; }
}

check 'the emulator follows its plan' validates
check 'an interrupt leaves nothing behind' ended_by INT 1
check 'a request to terminate leaves nothing behind' ended_by TERM 1
check 'a kill leaves nothing behind' ended_by KILL 137
check 'an unknown figure is refused' ends_with 2 'no figure' "$lab" testbed fig99
check 'an unwritable folder is refused at once' ends_with 1 'cannot write' "$lab" testbed validate --out /proc/nowhere
check 'without root it says what it needs' ends_with 1 'needs root' \
    setpriv --reuid 65534 --clear-groups --bounding-set -all --inh-caps -all "$lab" testbed validate --out /tmp
finish
