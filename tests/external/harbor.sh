#!/usr/bin/env bash
# Runs Harbor on exported tasks against the real judge: the oracle, then a scripted agent.
# Usage: ARENA_PYTHON=… HARBOR_PYTHON=… tests/external/harbor.sh [VENV]    (VENV is made if it is missing)
set -euo pipefail
source "$(dirname "$0")/serving.sh"
trap 'rm -rf "$WORK"' EXIT
VENV="${1:-$WORK/venv}"
TASKS=(
    triton2triton/normalization/rms_norm triton2triton/normalization/log_softmax triton2triton/fundamentals/add
    triton2triton/fundamentals/reverse_range triton2triton/fundamentals/naive_softmax
    hip2hip/modules/softmax hip2hip/modules/gelu hip2hip/modules/silu
    torch2hip/modules/softmax torch2hip/modules/scaled_tanh
)

new_enough() { "$1" -c 'import sys; raise SystemExit(sys.version_info < (3, 12))' 2> /dev/null; }
if [ ! -x "$VENV/bin/harbor" ]; then
    for PYTHON in ${HARBOR_PYTHON:-python3.12 python3.13 python3 "$ARENA_PYTHON"}; do new_enough "$PYTHON" && break; done
    new_enough "$PYTHON" || { echo "harbor: skipped, it needs Python 3.12; set HARBOR_PYTHON"; exit 0; }
    "$PYTHON" -m venv "$VENV"
fi
"$VENV/bin/pip" install -q "$ROOT[harbor]"
"$VENV/bin/python" -c "import importlib.util as u; assert not u.find_spec('torch'), 'not the extra alone'"
serve "${TASKS[@]}"
cd "$WORK"
"$VENV/bin/arena" export harbor --out "$WORK/tasks" --platform cpu $(printf -- '--tasks %s ' "${TASKS[@]}")
export HARBOR_TELEMETRY=0 PYTHONPATH="$ROOT/tests/external"
run() {  # JOB AGENT
    "$VENV/bin/harbor" run -p "$WORK/tasks" -a "$2" -e harbor_parts:LocalEnvironment -n 1 --job-name "$1" \
        --jobs-dir "$WORK/jobs" --yes --quiet
}
run oracle oracle
ARENA_TEST_WRONG=1 run scripted harbor_parts:ScriptedAgent
"$VENV/bin/python" - "$WORK/jobs" "${#TASKS[@]}" <<'END'
import json, sys
from pathlib import Path
jobs, count = Path(sys.argv[1]), int(sys.argv[2])
for job in ("oracle", "scripted"):
    trials = sorted(path.parents[1] for path in (jobs / job).glob("*/verifier/verdict.json"))
    assert len(trials) == count, f"{job}: {len(trials)} of {count} trials have a verdict"
    for trial in trials:
        verdict = json.loads((trial / "verifier" / "verdict.json").read_text())
        reward = json.loads((trial / "verifier" / "reward.json").read_text())
        result = json.loads((trial / "result.json").read_text())
        task, told = result["task_name"].rpartition("/")[2], result["verifier_result"]["rewards"]
        speedup = verdict["speedup"]
        bounded = max(0.0, 1 - 1.05 / speedup) if verdict["outcome"] in ("solved", "not handed in") and speedup else 0.0
        assert reward == told == {"reward": verdict["bounded_reward"]} and abs(reward["reward"] - bounded) < 1e-9
        print(f"{job:9} {task:42} {verdict['text']:75} dense {verdict['reward']:7.3f} reward {reward['reward']:.3f}")
        if job == "oracle":
            assert verdict["outcome"] == "solved", verdict
        else:
            expected = "wrong_result" if task.endswith("__rms_norm") else "passed"
            if task.startswith("torch2hip"):  # there is no kernel to begin with
                expected = "nothing_submitted"
            else:
                assert json.loads((trial / "agent" / "evaluated.json").read_text())["status"] == "passed"
                assert "refused: 401" in (trial / "agent" / "step-2.txt").read_text(), "an agent gets no verdict"
            assert verdict["stage_status"] == expected and (expected == "passed" or reward["reward"] == 0), verdict
END
cd "$WORK" && PYTHONPATH="$ROOT" "${ARENA_PYTHON:-python}" -m arena report runs/served --out "$WORK/report" | tail -3
echo "harbor: passed"
