# docs/deployment.md says how to pin this image by its digest.
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

# Where torch is needed (arm64), give the index of CPU builds here to keep GPU libraries out of the image.
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_EXTRA_INDEX_URL=${PIP_EXTRA_INDEX_URL} PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1

WORKDIR /app
COPY requirements/runtime.txt requirements/runtime.txt
# Every package by its hash; torch, which only arm64 needs, has other hashes on each index of builds.
RUN pip install --no-deps --require-hashes -r requirements/runtime.txt \
    && pip install "torch==2.13.0; platform_machine == 'aarch64'"
COPY pyproject.toml README.md LICENSE ./
COPY esker esker
COPY migrations migrations
COPY server server
COPY embedding_worker embedding_worker
RUN pip install --no-deps --no-build-isolation .

# With it, the embedded Postgres also starts under a user id without a name.
RUN apt-get update && apt-get install -y --no-install-recommends libnss-wrapper && rm -rf /var/lib/apt/lists/*

# Nothing but the home is written to, and that is a volume, so the container can be read-only.
RUN useradd --create-home --uid 10001 esker \
    && install -d -o esker -g esker -m 700 /home/esker/.local /home/esker/.local/share /home/esker/.local/share/esker
USER esker
# A published port leads to the address of the container. The server asks for a key before it listens there.
ENV HOME=/home/esker PYTHONDONTWRITEBYTECODE=1 ESKER_HOST=0.0.0.0
VOLUME /home/esker/.local/share/esker
EXPOSE 8377
CMD ["esker", "serve"]
