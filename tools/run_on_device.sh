#!/usr/bin/env bash
# configs/full.yaml and every cheat fixture on GPUs that are lent for minutes at a time: the last GPU has the cheats, the others the run.
# Give the next call what this one has left in OUT, and both go on.
#     bash tools/run_on_device.sh OUT [SECONDS] [FOLDER-OF-THE-LAST-CALL]      CHEATS=none: every GPU has the run
set -u
cd "$(dirname "$0")/.."
out=$1 seconds=${2:-570} last=${3:-}
python=${PYTHON:-python3}
gpus=$(nvidia-smi --list-gpus | wc -l)
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD PYTHONUNBUFFERED=1
mkdir -p "$out" runs
"$python" -m arena tasks list >/dev/null || exit # before minutes are spent: something is missing on this machine
if [ -n "$last" ]; then
    tar -xJf "$last/run.tar.xz" -C runs
    cp "$last/cheats.json" "$out/" 2>/dev/null
fi

devices=all
if [ "${CHEATS:-}" != none ] && [ "$gpus" -gt 1 ]; then
    devices=$(seq -s, 0 $((gpus - 2)))
    CUDA_VISIBLE_DEVICES=$((gpus - 1)) timeout $((seconds - 5)) \
        "$python" tools/cheat_table.py --run --gpu --missing --results "$out/cheats.json" >"$out/cheats.log" 2>&1 &
fi
timeout --signal INT --kill-after 15 $((seconds - 25)) \
    "$python" -m arena run configs/full.yaml --devices "$devices" >"$out/run.log" 2>&1
tar -cJf "$out/run.tar.xz" -C runs full
wait
tail -n 4 "$out"/*.log
# Processors that a host takes away make passes late: the eighth number, in hundredths of a second, beside those before it.
grep '^cpu ' /proc/stat
