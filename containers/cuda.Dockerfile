# Unseen Arena on NVIDIA GPUs: `make image PLATFORM=cuda`; docs/evaluate/nvidia.md says how to run it.
# By digest: --build-arg BASE=nvidia/cuda@sha256:…, from `docker buildx imagetools inspect nvidia/cuda:13.0.2-devel-ubuntu24.04`.
ARG BASE=nvidia/cuda:13.0.2-devel-ubuntu24.04
FROM ${BASE}

ARG TORCH=2.13.0
# Another index of PyTorch, which its installation page names; empty: pip's own, whose wheels for Linux are built for CUDA.
ARG TORCH_INDEX=
ENV DEBIAN_FRONTEND=noninteractive \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/arena/bin:$PATH \
    CUDA_HOME=/usr/local/cuda \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

# Versions of packages are those of the base's Ubuntu release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates g++ libboost-context-dev make python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

# PyTorch for NVIDIA with its Triton, before the package: the setup script keeps the PyTorch that it finds.
RUN python3 -m venv /opt/arena \
    && /opt/arena/bin/pip install "torch==${TORCH}" ${TORCH_INDEX:+--index-url "${TORCH_INDEX}"}

WORKDIR /opt/unseen-arena
COPY pyproject.toml constraints.txt README.md LICENSE Makefile ./
COPY arena arena/
COPY tasks tasks/
COPY configs configs/
COPY examples examples/
COPY tests tests/
COPY tools tools/
RUN VENV=/opt/arena bash tools/setup.sh \
    && python -m compileall -q arena \
    && chmod -R a+rX . \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 10001 arena

USER 10001
WORKDIR /home/arena

# The check runs kernels for about 40 s: once at the start, then weekly. Without a usable GPU it fails.
HEALTHCHECK --start-period=10m --start-interval=5s --interval=168h --timeout=5m --retries=1 \
    CMD ["arena", "doctor", "--quick", "--platform", "cuda"]
ENTRYPOINT ["arena"]
CMD ["doctor"]
