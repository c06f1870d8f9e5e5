#!/usr/bin/env bash
# Makes the environment of the simulated MI300X: a Debian with HIP and ROCr (hipcc, libamdhip64, libhsa-runtime64, rocminfo),
# and this folder's driver in it. Used by machine.py. Simulated: no AMD GPU is involved, and no time that it shows is one.
#
# Needs root, debootstrap, and a Debian mirror. Costs 1.6 GB with its caches, below ${XDG_CACHE_HOME:-~/.cache}/unseen-arena/rocm-sim, and once
# 1 min 26 s on two cores where the mirror is near. Repeat it freely: what is there stays, the driver is built where it has changed.
#
# ROCM_SIM_SUITE is another suite of Debian. In forky, on 2026-11-29: hipcc 7.0.2, libamdhip64 and libhsa-runtime64 6.4.3,
# rocminfo 7.2.4, clang 21. ROCM_SIM_MIRROR is another mirror, such as a dated one.
set -euo pipefail
cd "$(dirname "$0")"

SUITE=${ROCM_SIM_SUITE:-forky}
MIRROR=${ROCM_SIM_MIRROR:-} # empty: that of debootstrap
FOLDER=${XDG_CACHE_HOME:-$HOME/.cache}/unseen-arena/rocm-sim
PACKAGES=ca-certificates,hipcc,libamdhip64-dev,rocminfo,g++
DRIVER=usr/lib/rocm-sim
SCRIPT=/usr/share/debootstrap/scripts/sid # that of every newer suite, which an older debootstrap does not know by name

refuse() { echo "rocm-sim: $*" >&2 && exit 2; }
[ "$(id -u)" = 0 ] || refuse "this needs root, for debootstrap and chroot; nothing was changed"
command -v debootstrap >/dev/null || refuse "debootstrap is missing: apt-get install debootstrap; nothing was changed"
command -v bwrap >/dev/null || refuse "bubblewrap is missing: apt-get install bubblewrap; nothing was changed"

mkdir -p "$FOLDER"
exec 9>"$FOLDER/lock"
flock 9

if [ ! -d "$FOLDER/root" ]; then
    echo "rocm-sim: Debian $SUITE with ROCm in $FOLDER (about a minute)" >&2
    # What was downloaded is kept by an interrupted attempt, and used by the next one.
    mkdir -p "$FOLDER/packages"
    rm -rf "$FOLDER/attempt"
    debootstrap --variant=minbase --include="$PACKAGES" --cache-dir="$FOLDER/packages" \
        "$SUITE" "$FOLDER/attempt" "$MIRROR" "$SCRIPT" >"$FOLDER/debootstrap.log" 2>&1 ||
        refuse "debootstrap failed, the last lines of $FOLDER/debootstrap.log: $(tail -n 3 "$FOLDER/debootstrap.log")"
    rm -rf "$FOLDER/attempt/var/cache/apt/archives" "$FOLDER/packages"
    mv "$FOLDER/attempt" "$FOLDER/root"
fi

sources=$(cat driver/*.h driver/*.c | sha256sum | cut -c1-16)
if [ ! -f "$FOLDER/root/$DRIVER/libkfd.so" ] || [ "$(cat "$FOLDER/root/$DRIVER/sources" 2>/dev/null)" != "$sources" ]; then
    mkdir -p "$FOLDER/root/$DRIVER/source"
    cp driver/*.h driver/*.c "$FOLDER/root/$DRIVER/source/"
    chroot "$FOLDER/root" /bin/sh -c "cd /$DRIVER/source && gcc -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror \
        -shared -fPIC -o ../libkfd.so kfd.c packets.c link.c -ldl -lpthread"
    echo "$sources" >"$FOLDER/root/$DRIVER/sources"
fi
chroot "$FOLDER/root" dpkg-query --showformat '${Package} ${Version}\n' --show \
    hipcc libamdhip64-6 libhsa-runtime64-1 rocminfo >"$FOLDER/ready"
echo "rocm-sim: ready, $(paste -sd, "$FOLDER/ready" | sed 's/,/, /g')" >&2
