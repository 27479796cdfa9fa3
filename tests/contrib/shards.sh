#!/usr/bin/env bash
# Runs the files of contrib/ for Slurm and Kubernetes as the schedulers would: each part with its own variables, then
# the merge, and compares the result with a single run.
#
#   tests/contrib/shards.sh [PATH_OF_CTCP]
#
# Without an argument it builds the command. Status 0: passed, 1: failed, 77: a required program is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly PARTS=3
ids=(thesis-overhead tcpnc-lemma1)
program=${1:-target/release/ctcp-lab}
[ $# -gt 0 ] || cargo build --release --quiet -p ctcp-lab
if ! python3 -c 'import yaml' 2>/dev/null; then
    echo 'SKIP: needs python3 with PyYAML'
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
cp "$program" "$scratch/bin/ctcp-lab"
export PATH=$scratch/bin:$PATH

fail() { echo "FAILED: $1" >&2; exit 1; }

# Compares everything but the duration.
same_results() {
    local id
    for id in "${ids[@]}"; do
        cmp "$1/$id.csv" "$2/$id.csv" && cmp "$1/$id.svg" "$2/$id.svg" || return 1
        cmp <(grep -v '"wall_s"' "$1/$id.json") <(grep -v '"wall_s"' "$2/$id.json") || return 1
    done
}

# With few seeds some checks fail, which does not matter here.
settings=(--quick --seeds 1)
ctcp-lab repro "${ids[@]}" "${settings[@]}" --out "$scratch/whole" >/dev/null 2>&1 || [ $? -eq 1 ]

echo '--- Slurm'
sbatch=contrib/slurm/repro.sbatch
bash -n "$sbatch"
# A replacement of srun that drops the options and runs the rest.
# shellcheck disable=SC2016
printf '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n' >"$scratch/bin/srun"
chmod +x "$scratch/bin/srun"
if env -u SLURM_ARRAY_TASK_ID bash "$sbatch" "${ids[@]}" 2>/dev/null; then fail 'the script runs without an array'; fi
if SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MAX=1 bash "$sbatch" 2>/dev/null; then fail 'the script runs without an id'; fi
for part in 1 3; do
    SLURM_ARRAY_TASK_ID=$part SLURM_ARRAY_TASK_MAX=$PARTS SLURM_CPUS_PER_TASK=2 OUT=$scratch/slurm \
        bash "$sbatch" "${ids[@]}" "${settings[@]}"
done
if ctcp-lab repro merge "$scratch/slurm" --out "$scratch/none" 2>"$scratch/said"; then fail 'a merge without a part succeeded'; fi
grep -q '1 missing (2/3)' "$scratch/said" || fail "$(cat "$scratch/said")"
SHARDS=$PARTS SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_MAX=2 OUT=$scratch/slurm bash "$sbatch" "${ids[@]}" "${settings[@]}"
ctcp-lab repro merge "$scratch/slurm" --out "$scratch/slurm-merged" >/dev/null 2>&1 || [ $? -eq 1 ]
same_results "$scratch/whole" "$scratch/slurm-merged" || fail 'Slurm: different from the single run'

echo '--- Kubernetes'
# Prints the container's command, one word per line, after checks of what the API server would refuse.
words_of() {
    python3 - "$1" <<'PYTHON'
import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job"), job
spec, pod = job["spec"], job["spec"]["template"]["spec"]
container = pod["containers"][0]
environment = {entry["name"]: entry["value"] for entry in container["env"]}
assert all(isinstance(value, str) for value in environment.values()), environment
assert pod["restartPolicy"] == "Never"
volumes = {volume["name"] for volume in pod["volumes"]}
assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
if "SHARDS" in environment:
    assert spec["completionMode"] == "Indexed"
    assert str(spec["completions"]) == environment["SHARDS"], "completions and SHARDS differ"
for word in container["command"] + container["args"]:
    assert "\n" not in word, word
    print(word)
PYTHON
}
words_of contrib/kubernetes/repro.yaml >"$scratch/repro.words" || fail 'repro.yaml'
words_of contrib/kubernetes/merge.yaml >"$scratch/merge.words" || fail 'merge.yaml'
mapfile -t words <"$scratch/repro.words"
for index in 0 1 2; do
    IDS="${ids[*]} ${settings[*]}" SHARDS=$PARTS OUT=$scratch/pods JOB_COMPLETION_INDEX=$index "${words[@]}"
done
mapfile -t words <"$scratch/merge.words"
OUT=$scratch/pods RESULTS=$scratch/pods-merged "${words[@]}" >/dev/null 2>&1 || [ $? -eq 1 ]
same_results "$scratch/whole" "$scratch/pods-merged" || fail 'Kubernetes: different from the single run'

echo 'ok'
