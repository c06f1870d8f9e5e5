#!/usr/bin/env bash
# Sets up what a command needs: `setup.sh run` what `arena` needs on this machine, `setup.sh test` also test tools, Ray and
# compilers for cross-compilation targets (ARENA_TARGETS=no leaves these out). Debian packages where that is possible, a
# virtual environment, this package. Safe to repeat: what is there is left alone.
# An installed ROCm or CUDA build of torch is used, never replaced. TORCH_INDEX is where pip finds PyTorch: the index for
# CPUs on PyTorch's installation page spares a download of several GB for CUDA.
set -euo pipefail
cd "$(dirname "$0")/.."

WHAT=${1:-test}
PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
export PIP_ROOT_USER_ACTION=ignore
PACKAGES=(g++ make libboost-context-dev python3-venv bubblewrap)

step() { echo "setup: $*" >&2; }
has_headers() { [ -e /usr/include/boost/context/detail/fcontext.hpp ]; }
has_compiler() { command -v g++ >/dev/null || command -v clang++ >/dev/null; }
can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }
install_packages() {
    step "Debian packages $*"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
has_venv() { "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null; }

if ! { has_headers && has_compiler && has_venv && command -v bwrap >/dev/null; }; then
    if can_install; then
        apt-get update -qq
        install_packages "${PACKAGES[@]}"
    else
        step "not root, or no apt: continuing without ${PACKAGES[*]}; 'arena doctor' says what that costs"
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
    step "virtual environment $VENV"
    "$PYTHON" -m venv ${gpu_torch:+--system-site-packages} "$VENV"
fi
installed=$("$VENV/bin/python" -c 'import torch; print(torch.version.cuda or torch.version.hip or "")' 2>/dev/null || true)

install() { "$VENV/bin/python" -m pip install -qq --disable-pip-version-check --no-warn-script-location "$@"; }
extras=,rocm,dev
[ "$WHAT" != run ] || extras=
if [ -n "$installed" ]; then
    step "this package, beside the installed torch, which was built for $installed"
    install -e ".[${extras#,rocm,}]" # no hip-python: what ROCm brings fits
else
    if [ -n "${TORCH_INDEX:-}" ]; then
        step "torch from TORCH_INDEX"
        install --index-url "$TORCH_INDEX" "$(grep '^torch==' constraints.txt)"
    fi
    step "this package, torch for the CPU, Triton (about a minute)"
    install -c constraints.txt -e ".[cpu$extras]"
fi
[ "$WHAT" != run ] || exit 0

# From here on nothing is needed to evaluate on this machine: what fails is a warning.
[ "${ARENA_TARGETS:-yes}" != no ] || exit 0

builds_for() { # amd or nvidia
    "$VENV/bin/python" -c "
from arena.platforms.cross.compilers import abilities
raise SystemExit(not any(a.able for a in abilities() if (a.language, a.vendor) == ('hip', '$1')))"
}
warn() { echo "warning: whether HIP tasks build for $1 GPUs is not checked; 'arena doctor' says what is missing" >&2; }

newest_llvm() {
    local number
    for number in 22 21 20 19 18 17; do
        if apt-cache show "clang-$number" >/dev/null 2>&1; then echo "$number" && return; fi
    done
    return 1
}

install_for_amd() {
    local number
    "$VENV/bin/python" -m arena.platforms.rocm.hip_headers || return 1
    if builds_for amd; then return; fi
    can_install && apt-get update -qq && number=$(newest_llvm) || return 1
    install_packages "clang-$number" "lld-$number" "llvm-$number" "clang-tools-$number" rocm-device-libs
}

install_for_nvidia() {
    local constraints=(-c constraints.txt)
    [ -z "$installed" ] || constraints=() # the installed torch pins some of these packages
    install "${constraints[@]}" -e '.[cuda-compiler]'
}

step "compilers for AMD and NVIDIA GPUs that this machine lacks (ARENA_TARGETS=no leaves them out)"
builds_for amd || { install_for_amd && builds_for amd; } || warn AMD
builds_for nvidia || { install_for_nvidia && builds_for nvidia; } || warn NVIDIA
