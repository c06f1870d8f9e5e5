# Unseen Arena on AMD GPUs: `make image PLATFORM=rocm`; docs/evaluate/amd.md says how to run it.
# By digest: --build-arg BASE=rocm/dev-ubuntu-24.04@sha256:…, from `docker buildx imagetools inspect rocm/dev-ubuntu-24.04:7.2.4-complete`.
ARG BASE=rocm/dev-ubuntu-24.04:7.2.4-complete
FROM ${BASE}

ARG TORCH=2.13.0
# The index of PyTorch for ROCm 7.2, which its installation page names. Required: pip's own has wheels for CUDA.
ARG TORCH_INDEX
ENV DEBIAN_FRONTEND=noninteractive \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PATH=/opt/arena/bin:$PATH \
    ROCM_PATH=/opt/rocm

# Versions of packages are those of the base's Ubuntu release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        bubblewrap ca-certificates g++ libboost-context-dev make python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*

# PyTorch for AMD with its Triton, before the package: the setup script keeps the PyTorch that it finds.
RUN python3 -m venv /opt/arena \
    && /opt/arena/bin/pip install "torch==${TORCH}" --index-url "${TORCH_INDEX:?see containers/rocm.Dockerfile}"

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
    CMD ["arena", "doctor", "--quick", "--platform", "rocm"]
ENTRYPOINT ["arena"]
CMD ["doctor"]
