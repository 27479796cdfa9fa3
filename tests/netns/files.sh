#!/usr/bin/env bash
# get and put: whole files, resuming after a kill, full and read-only disks, and malicious names.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

network
program_and_keys
random_file "$scratch/served/ten" 10000000
random_file "$scratch/served/dir/small" 100000
random_file "$scratch/local/up" 3000000
echo secret >"$scratch/secret"
ln -s "$scratch/secret" "$scratch/served/link"
start_server --files "$scratch/served"

get() { on_client timeout 60 "$ctcp" get -q "${remote[@]}" "$@"; }
put() { on_client timeout 60 "$ctcp" put -q "${remote[@]}" "$@"; }

got() {
    get "$1" -o "$2" && cmp "$scratch/served/$1" "$2"
}

directory_bytes() { find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'; }
has_half() { [ "$(directory_bytes "$1")" -gt 5000000 ]; }

resumed() {
    local before after
    mkdir -p "$scratch/resume"
    background "$client_ns" get.log "$ctcp" get -q "${remote[@]}" ten -o "$scratch/resume/ten"
    wait_until 20 has_half "$scratch/resume" || return 1
    stop "$pid"
    [ ! -e "$scratch/resume/ten" ] || { echo 'half a file has the name of the whole'; return 1; }
    before=$(on_client cat /sys/class/net/path1/statistics/rx_bytes)
    got ten "$scratch/resume/ten" || return 1
    after=$(on_client cat /sys/class/net/path1/statistics/rx_bytes)
    echo "$((after - before)) bytes for the rest"
    [ $((after - before)) -lt 8000000 ]
}

# refused_on DIRECTORY TEXT: status 1, the message has TEXT, no file has the name
refused_on() {
    ends_with 1 "$2" get ten -o "$1/ten" && [ ! -e "$1/ten" ]
}

# mount_tmpfs NAME OPTIONS: sets $directory
mount_tmpfs() {
    directory=$scratch/$1
    mkdir -p "$directory"
    mount -t tmpfs -o "$2" none "$directory" 2>/dev/null || return 1
    mounts+=("$directory")
}

# Messages about a name; other errors do not match.
readonly OF_THE_NAME='the file name\|symbolic link\|no such file'

# name_refused STATUS NAME: 2 for invalid names, 1 for names that the server refuses
name_refused() {
    rm -f "$scratch/stolen"
    ends_with "$1" "$OF_THE_NAME" get -o "$scratch/stolen" -- "$2" && [ ! -e "$scratch/stolen" ]
}

# put_refused STATUS NAME
put_refused() {
    ends_with "$1" "$OF_THE_NAME" put -- "$scratch/local/up" "$2" && [ "$(cat "$scratch/secret")" = secret ] && [ ! -e "$scratch/new" ]
}

stored() {
    put "$scratch/local/up" "$1" && cmp "$scratch/local/up" "$scratch/served/$1"
}

# put_too_large NAME: the upload is refused as too large, leaves nothing, and removes nothing of others
put_too_large() {
    ends_with 1 'the disk is full' put "$scratch/served/ten" "$1" && [ "$(ls "$directory")" = "$(printf 'old.part\nold.part.json')" ]
}

# stored_instead NAME: stored although an interrupted upload holds the space
stored_instead() {
    stored "$1" && [ "$(ls "$directory")" = "$(basename "$1")" ]
}

check 'get' got ten "$scratch/whole"
check 'get from a directory' got dir/small "$scratch/small"
check 'get killed at half and resumed' resumed
if mount_tmpfs full size=3m; then check 'get onto a full disk' refused_on "$directory" full; fi
if mount_tmpfs readonly size=30m,ro; then check 'get onto a read-only disk' refused_on "$directory" read-only; fi
for name in ../secret "$scratch/secret" dir/../../secret ''; do
    check "get '${name/$scratch/...}' is refused" name_refused 2 "$name"
done
for name in link nothing; do check "get '$name' is refused" name_refused 1 "$name"; done
check 'put to a read-only server is refused' ends_with 1 'takes no files' put "$scratch/local/up" up
stop "$server_pid"
start_server --files "$scratch/served" --files-write
check 'put' stored up
check 'put into a directory' stored dir/up
if mount_tmpfs served/crowded size=5m; then
    stop "$server_pid"
    head -c 3000000 /dev/zero >"$directory/old.part"
    echo '{"version":1,"name":"crowded/old","identity":{"size":4000000,"modified":1}}' >"$directory/old.part.json"
    start_server --files "$scratch/served" --files-write
    check 'put onto a disk that is too small' put_too_large crowded/ten
    check 'put onto a disk that an interrupted one holds' stored_instead crowded/up
fi
for name in ../new "$scratch/new" dir/../../new; do
    check "put '${name/$scratch/...}' is refused" put_refused 2 "$name"
done
check "put 'link/new' is refused" put_refused 1 link/new
check 'the server is still running' is_alive "$server_pid"
finish
