#!/usr/bin/env bash
# A check of a change beside one GPU, in ten minutes. Side by side: every task's kernels on every case, and which arithmetic is
# accepted. Then alone: the timed cases of TIMED against the least length, and kernels against themselves.
#     bash tools/smoke_on_device.sh OUT [TASK...]      TIMED='torch2hip/*' SHARDS=6 SECONDS_SHARED=400 SECONDS_TIMED=150
set -u
cd "$(dirname "$0")/.."
out=$1
shift
python=${PYTHON:-python3}
shards=${SHARDS:-6}
mkdir -p "$out"
export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD PYTHONUNBUFFERED=1
check=("$python" -m arena tasks check --platform auto --targets '' --details)
[ $# -gt 0 ] || set -- $(cd tasks && ls -d */*/*/ | sed 's,/$,,')

timeout "${SECONDS_SHARED:-400}" "$python" tools/arithmetic_candidates.py --platform auto >"$out/arithmetic.log" 2>&1 &
for ((shard = 0; shard < shards; shard++)); do
    part=()
    for ((n = shard + 1; n <= $#; n += shards)); do part+=("${!n}"); done
    [ ${#part[@]} -eq 0 ] ||
        timeout "${SECONDS_SHARED:-400}" "${check[@]}" --no-timing --out "/tmp/check-$$-$shard" "${part[@]}" >"$out/check$shard.log" 2>&1 &
done
wait
cat "$out"/check?.log >"$out/check.log"
rm -f "$out"/check?.log
if [ -n "${TIMED:-}" ]; then
    set -f
    timeout "${SECONDS_TIMED:-150}" "${check[@]}" --out "/tmp/check-$$-timed" $TIMED >"$out/timed.log" 2>&1
fi
tail -n 25 "$out/arithmetic.log"
grep -hE '^(passed|failed) ' "$out/check.log" | cut -d' ' -f1 | sort | uniq -c
grep -hE -A9 '^failed ' "$out/check.log"
grep -hE '^(passed|failed) |long enough|A/A' "$out/timed.log"
