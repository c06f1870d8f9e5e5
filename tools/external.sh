#!/usr/bin/env bash
# Run one adapter end to end against the real judge, in an environment made from its extra alone: no torch in it.
#   tools/external.sh mcp|openreward|verifiers|export|tracking|harbor|inspect
# PYTHON: of the judge, which has torch (default .venv/bin/python). EXTERNAL: folder of the environments.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?tools/external.sh NAME}
python=${PYTHON:-.venv/bin/python}
place=$(realpath -m "${EXTERNAL:-build/external}/$name")
tests=tests/external/test_$name.py
if [ -f "tests/external/$name.sh" ]; then
  ARENA_PYTHON=$(realpath -s "$python") exec "tests/external/$name.sh" "$place"
fi
[ -f "$tests" ] || { echo "there is no $tests" >&2; exit 2; }
case $name in
  verifiers) install=(-e . -e integrations/environments/unseen_arena uv) ;;
  *) install=(-e ".[$name]") ;;
esac

"$python" -m venv "$place"
"$place/bin/pip" install -q --disable-pip-version-check --no-compile "${install[@]}" pytest pytest-timeout
if "$place/bin/python" -c "import torch" 2>/dev/null; then
  echo "torch is in the environment of $name" >&2
  exit 1
fi

scratch=$(mktemp -d)
PYTHONPATH=$PWD "$python" -m arena serve rms_norm --platform cpu --max-work 2e4 --seeds 1 --evaluations 4 \
  --runs-dir "$scratch" >"$scratch/first_line" &
server=$!
trap 'kill -TERM $server 2>/dev/null; wait $server || true; rm -rf "$scratch"' EXIT
for _ in $(seq 600); do
  [ -s "$scratch/first_line" ] && break
  kill -0 "$server"
  sleep 0.2
done
field() { "$python" -c 'import json, sys; print(json.loads(open(sys.argv[1]).readline())[sys.argv[2]])' "$scratch/first_line" "$1"; }
ARENA_URL=$(field address) ARENA_TOKEN=$(field token) ARENA_RUN=$(field run) PATH="$place/bin:$PATH" \
  "$place/bin/python" -m pytest -v --confcutdir tests/external -o filterwarnings= -o addopts=--strict-markers \
  -k "$name" "$tests" tests/integrations/test_same_reward.py
