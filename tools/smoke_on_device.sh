#!/usr/bin/env bash
# A short check of a change beside one GPU: which arithmetic is accepted, fixtures that have not run there since they changed, then
# correctness of some tasks. TIMING=--timing also holds their timed cases against the least length, and kernels against themselves.
#     bash tools/smoke_on_device.sh OUT SECONDS TASK...
set -u
cd "$(dirname "$0")/.."
out=$1 seconds=$2
shift 2
python=${PYTHON:-python3}
mkdir -p "$out"
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD PYTHONUNBUFFERED=1
timeout $((seconds / 4)) "$python" tools/arithmetic_candidates.py --platform auto >"$out/arithmetic.log" 2>&1
timeout $((seconds / 2)) "$python" tools/cheat_table.py --run --gpu --missing >"$out/cheats.log" 2>&1
cp tests/cheats/results-gpu.json "$out/"
timeout $((seconds / 4)) "$python" -m arena tasks check --platform auto --targets '' "${TIMING:---no-timing}" --out "$out/check" "$@" \
    >"$out/check.log" 2>&1
tail -n 25 "$out/arithmetic.log" "$out/cheats.log" "$out/check.log"
rm -rf "$out/check"
