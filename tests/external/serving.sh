# Sourced by the other scripts: a judge on the CPU platform, in the project's own environment; sets ARENA_URL and tokens.
# ARENA_PYTHON: a Python in which the project, PyTorch and Triton are installed.

unset PYTHONPATH  # Inspect looks for the package where it is installed
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
WORK="$(mktemp -d)"
QUICK=(--platform cpu --max-work 2e4 --seeds 1 --agent-episodes 100)

serve() {  # TASK…
    mkfifo "$WORK/line"
    (cd "$WORK" && PYTHONPATH="$ROOT" exec "${ARENA_PYTHON:-python}" -m arena serve "$@" "${QUICK[@]}") > "$WORK/line" &
    SERVER=$!
    trap 'kill -INT $SERVER 2> /dev/null || true; wait $SERVER || true; rm -rf "$WORK"' EXIT
    read -r LINE < "$WORK/line"
    value() { printf %s "$LINE" | "${ARENA_PYTHON:-python}" -c "import json, sys; print(json.load(sys.stdin)['$1'])"; }
    ARENA_URL="$(value address)" ARENA_TOKEN="$(value token)" ARENA_AGENT_TOKEN="$(value agent_token)"
    export ARENA_URL ARENA_TOKEN ARENA_AGENT_TOKEN
}
