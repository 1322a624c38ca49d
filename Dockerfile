FROM python:3.11-slim

# Give the index of CPU builds here to keep GPU libraries out of the image.
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_EXTRA_INDEX_URL=${PIP_EXTRA_INDEX_URL} PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1

WORKDIR /app
COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install -r requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY esker esker
COPY migrations migrations
COPY server server
COPY embedding_worker embedding_worker
RUN pip install --no-deps .

RUN useradd --create-home --uid 10001 esker
USER esker
EXPOSE 8377
CMD ["esker", "serve"]
