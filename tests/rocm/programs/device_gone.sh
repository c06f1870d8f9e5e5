#!/bin/sh
# End the device process while a candidate is in its first call: `device_gone.sh PYTHON CANDIDATE`. Prints the exit code of the judge.
# The first launch is the judge's own, at its start; the candidate is compiled and called in the seconds after it.
"$1" -P -m arena evaluate hip2hip/modules/softmax "$2" --platform rocm-sim --effort correctness --seeds 1 --no-heldout \
    --max-work 1e4 --call-timeout-s 60 &
judge=$!
until [ -s /tmp/rocm-sim-launches ]; do sleep 1; done
sleep 20
for process in /proc/[0-9]*; do
    if tr '\0' ' ' <"$process/cmdline" 2>/dev/null | grep -q "tests.rocm.device"; then kill -9 "${process#/proc/}"; fi
done
began=$(date +%s)
wait $judge
echo "exit code $? after $(($(date +%s) - began)) s"
