#!/usr/bin/env bash
# Runs a configuration on all GPUs of a Slurm allocation: Ray on every node, `arena run` on the first one.
#
#   sbatch --nodes 2 --gpus-per-node 8 examples/slurm/arena_ray.sh full --platform cuda --runs-dir /shared/runs
#
# Everything after the script's name goes to `arena run`. The folder of runs must be one that the first node can write;
# give one that outlives the job, and submit the same command again to resume. Python's environment with
# unseen-arena[ray] must be active on every node, at the same version. ARENA_RAY_PORT is Ray's port, 6379 by default.
# Tried with stand-ins for Slurm's commands on one machine, not on Slurm.
#SBATCH --job-name=arena
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
set -euo pipefail

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
ip=$(srun --nodes 1 --ntasks 1 --nodelist "$first" hostname --all-ip-addresses | awk '{print $1}')
address="$ip:${ARENA_RAY_PORT:-6379}"

# Whoever reaches Ray's ports without the token is refused. srun hands variables on; command lines never show it.
RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token
# Judges at the usual priority; Ray's default is nice 15.
export RAY_worker_niceness=0

# Every node judges on its GPUs; the resource arena_judge is for `--platform cpu`.
srun --nodes "$SLURM_NNODES" --ntasks "$SLURM_NNODES" --ntasks-per-node 1 \
    ray symmetric-run --address "$address" --min-nodes "$SLURM_NNODES" \
    --include-dashboard=false --disable-usage-stats --resources='{"arena_judge": 1}' -- \
    arena run "$@" --executor ray --address "$address"
