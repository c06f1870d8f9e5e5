#!/usr/bin/env bash
# Measure on GPUs that are lent for minutes at a time; files go to OUT.
#     bash tools/on_device.sh check OUT [SECONDS]                           every kernel on every case (first GPU), every cheat fixture
#                                                                           (second GPU), mutants on the processor cores that are left
#     bash tools/on_device.sh run OUT [SECONDS] [FOLDER-OF-THE-LAST-CALL]   configs/full.yaml on all GPUs but the last, which has the cheats
# `run` continues the last call. CHEATS=--missing: `check` continues with the fixtures that are left. CHEATS=none: `run` uses every GPU.
set -u
cd "$(dirname "$0")/.."
what=${1:?check or run} out=${2:?OUT} seconds=${3:-570} last=${4:-}
python=${PYTHON:-python3}
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD PYTHONUNBUFFERED=1
mkdir -p "$out" runs
"$python" -m arena tasks list >/dev/null || exit # before minutes are spent: something is missing on this machine

cheats() { # GPU SECONDS OPTIONS...
    local gpu=$1 limit=$2
    shift 2
    CUDA_VISIBLE_DEVICES=$gpu timeout "$limit" "$python" tools/cheat_table.py --run --gpu --results "$out/cheats.json" "$@" \
        >"$out/cheats.log" 2>&1
}

check() {
    CUDA_VISIBLE_DEVICES=0 timeout "$seconds" "$python" -m arena tasks check --platform cuda --targets '' --no-timing \
        --out "$out/check" >"$out/check.log" 2>&1 &
    # shellcheck disable=SC2086
    cheats 1 "$seconds" ${CHEATS:-} &
    CUDA_VISIBLE_DEVICES= nice timeout "$seconds" "$python" -m arena tasks check --mutants --jobs $(($(nproc) * 5 / 8)) \
        --out "$out/mutants" >"$out/mutants.log" 2>&1 &
    wait
    tar -C "$out" -czf "$out/checks.tar.gz" check mutants 2>/dev/null
    rm -rf "$out/check" "$out/mutants"
}

full_run() {
    local gpus devices=all
    gpus=$(nvidia-smi --list-gpus | wc -l)
    if [ -n "$last" ]; then
        tar -xJf "$last/run.tar.xz" -C runs
        cp "$last/cheats.json" "$out/" 2>/dev/null
    fi
    if [ "${CHEATS:-}" != none ] && [ "$gpus" -gt 1 ]; then
        devices=$(seq -s, 0 $((gpus - 2)))
        cheats $((gpus - 1)) $((seconds - 5)) --missing &
    fi
    timeout --signal INT --kill-after 15 $((seconds - 25)) \
        "$python" -m arena run configs/full.yaml --devices "$devices" >"$out/run.log" 2>&1
    tar -cJf "$out/run.tar.xz" -C runs full
    wait
    # Processors that a host takes away make passes late: the eighth number, in hundredths of a second, beside those before it.
    grep '^cpu ' /proc/stat
}

case $what in
    check) check ;;
    run) full_run ;;
    *) echo "unknown: $what; expected check or run" >&2 && exit 2 ;;
esac
tail -n 12 "$out"/*.log
