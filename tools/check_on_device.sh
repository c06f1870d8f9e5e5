#!/usr/bin/env bash
# What a change of the judge must show beside a GPU, in ten minutes of two of them: every kernel right on every case (first GPU), every
# cheat fixture caught and every honest one passed (second GPU), and meanwhile mutants on processor cores that are left.
#     bash tools/check_on_device.sh OUT [SECONDS]      CHEATS=--missing goes on with the fixtures of a run that was cut short
set -u
cd "$(dirname "$0")/.."
out=$1 seconds=${2:-570}
python=${PYTHON:-python3}
arena=("$python" -c "from arena.cli import main; main()")
mkdir -p "$out"
cores=$(nproc)
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD PYTHONUNBUFFERED=1

CUDA_VISIBLE_DEVICES=0 timeout "$seconds" "${arena[@]}" tasks check --platform cuda --targets '' --no-timing --out "$out/check" \
    >"$out/check.log" 2>&1 &
check=$!
(
    CUDA_VISIBLE_DEVICES=1 timeout "$seconds" "$python" tools/cheat_table.py --run --gpu ${CHEATS:-} >"$out/cheats.log" 2>&1
    cp tests/cheats/results-gpu.json "$out/"
) &
cheats=$!
CUDA_VISIBLE_DEVICES= nice timeout "$seconds" "${arena[@]}" tasks check --mutants --jobs $((cores * 5 / 8)) --out "$out/mutants" \
    >"$out/mutants.log" 2>&1 &
mutants=$!
wait $check $cheats $mutants
tail -n 12 "$out"/check.log "$out"/cheats.log "$out"/mutants.log
tar -C "$out" -czf "$out/checks.tar.gz" check mutants 2>/dev/null
rm -rf "$out/check" "$out/mutants"
