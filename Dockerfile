FROM python:3.11-slim

# Where torch is needed (arm64), give the index of CPU builds here to keep GPU libraries out of the image.
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_EXTRA_INDEX_URL=${PIP_EXTRA_INDEX_URL} PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1

WORKDIR /app
COPY requirements/lock.txt requirements/lock.txt
COPY pyproject.toml README.md LICENSE ./
COPY esker esker
COPY migrations migrations
COPY server server
COPY embedding_worker embedding_worker
RUN pip install -c requirements/lock.txt .

RUN useradd --create-home --uid 10001 esker
USER esker
EXPOSE 8377
CMD ["esker", "serve"]
