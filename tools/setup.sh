#!/usr/bin/env bash
# Sets up what `make run` and `make test` need: Debian packages where that is possible, a virtual environment, this package.
# Safe to repeat: what is there is left alone. An installed ROCm or CUDA build of torch is used, never replaced.
set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
PACKAGES=(g++ make libboost-context-dev python3-venv)

has_headers() { [ -e /usr/include/boost/context/detail/fcontext.hpp ]; }
has_compiler() { command -v g++ >/dev/null || command -v clang++ >/dev/null; }
has_venv() { "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; }

if ! { has_headers && has_compiler && has_venv; }; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing Debian packages: ${PACKAGES[*]}" >&2
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}" >/dev/null
    else
        echo "not root, or no apt: go on without ${PACKAGES[*]}; 'arena doctor' says what that costs" >&2
    fi
fi

"$PYTHON" - <<'CHECK'
import sys
if sys.version_info < (3, 11):
    sys.exit(f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}; name another with PYTHON=…")
CHECK

# A GPU build of torch in the interpreter's own packages: see it from the environment, and install none beside it.
gpu_torch=$("$PYTHON" -c 'import torch; print(torch.version.cuda or torch.version.hip or "")' 2>/dev/null || true)
if [ ! -x "$VENV/bin/python" ]; then
    "$PYTHON" -m venv ${gpu_torch:+--system-site-packages} "$VENV"
fi
installed=$("$VENV/bin/python" -c 'import torch; print(torch.version.cuda or torch.version.hip or "")' 2>/dev/null || true)

if [ -n "$installed" ]; then
    echo "keeping the installed torch, built for $installed" >&2
    "$VENV/bin/python" -m pip install -q -e '.[dev]'
else
    "$VENV/bin/python" -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[cpu,rocm,dev]'
fi
