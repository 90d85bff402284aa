# The image of the k8s-scheduler daemon.
#
# Two stages: `builder` has pip and the sources, the final one has Python and the finished
# environment. Everything that is fetched is checked against the hashes in requirements.lock and
# tools/build.lock.txt, and only wheels are accepted, so nothing is compiled here. The base image is
# named by its digest; docs/security.md#supply-chain says how it is renewed.
#
#   docker build --tag k8s-scheduler:0.1.0 .

FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b AS builder

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore

# The environment lies where the final stage has it: its scripts name their interpreter by path.
# It is made without pip; the builder's own pip fills it from outside. The build back end stays in
# this stage.
WORKDIR /src
COPY tools/build.lock.txt ./
RUN python -m venv --without-pip /opt/k8s-scheduler \
 && python -m pip install \
      --require-hashes --only-binary :all: --requirement build.lock.txt

# Dependencies first: this layer is rebuilt only when the lock changes.
COPY requirements.lock ./
RUN python -m pip --python /opt/k8s-scheduler/bin/python install \
      --require-hashes --only-binary :all: --requirement requirements.lock

COPY pyproject.toml README.md LICENSE ./
COPY k8s_scheduler ./k8s_scheduler
RUN python -m pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
 && python -m pip --python /opt/k8s-scheduler/bin/python install --no-deps --no-index /wheels/*.whl

# Bytecode is made now, because the root file system is read-only later. It is trusted without
# looking at the sources' times, which copying between stages may change.
RUN python -m compileall -q -j 0 --invalidation-mode unchecked-hash -f /opt/k8s-scheduler/lib


FROM python:3.13-slim@sha256:7c61056e61ac89e852de05f3dc6fa51a6dd2181797bceed46aa725dd7cb2cd3b

ARG VERSION=0.1.0
LABEL org.opencontainers.image.title="k8s-scheduler" \
      org.opencontainers.image.description="A Kubernetes scheduler that decides as kube-scheduler does" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="The k8s-scheduler authors"

# Nothing in the running container can install anything.
RUN python -m pip uninstall --yes --root-user-action ignore pip \
 && rm -rf /usr/local/lib/python3.13/ensurepip

COPY --from=builder /opt/k8s-scheduler /opt/k8s-scheduler
COPY LICENSE /licenses/LICENSE

ENV PATH="/opt/k8s-scheduler/bin:${PATH}" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# Numeric, so that runAsNonRoot can be checked without a passwd file.
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["k8s-scheduler"]
