#!/usr/bin/env bash
# Runs Inspect on served tasks against the real judge, with mockllm and with a model at a loopback endpoint.
# Usage: ARENA_PYTHON=… INSPECT_PYTHON=python3 tests/external/inspect.sh [VENV]    (VENV is made if it is missing)
set -euo pipefail
source "$(dirname "$0")/serving.sh"
VENV="${1:-$WORK/venv}"

[ -x "$VENV/bin/inspect" ] || "${INSPECT_PYTHON:-python3}" -m venv "$VENV"
"$VENV/bin/pip" install -q --force-reinstall --no-deps "$ROOT" && "$VENV/bin/pip" install -q "$ROOT[inspect]"
"$VENV/bin/python" -c "import importlib.util as u; assert not u.find_spec('torch'), 'not the extra alone'"
serve rms_norm triton2triton/fundamentals/add hip2hip/modules/silu
cd "$WORK"
"$VENV/bin/python" "$ROOT/tests/external/inspect_evals.py" "$WORK/logs"
"$VENV/bin/inspect" log dump "$(ls "$WORK"/logs/*.eval)" > "$WORK/log.json"
"$VENV/bin/python" - "$WORK/log.json" <<'END'
import json, sys
log = json.load(open(sys.argv[1]))
print("log:", log["eval"]["task"], log["status"], log["eval"]["task_args"], [one["id"] for one in log["samples"]])
END
"$VENV/bin/pip" install -q pytest pytest-timeout
(cd "$ROOT" && "$VENV/bin/python" -m pytest -q --confcutdir tests/external -o filterwarnings= \
    -k inspect tests/external/test_inspect.py tests/integrations/test_same_reward.py)
"$VENV/bin/inspect" view bundle --log-dir "$WORK/logs" --output-dir "${KEEP_BUNDLE:-$WORK/bundle}" --overwrite
echo "inspect: passed"
