# `make demo` and `make test` need Python ≥ 3.11 and a package index, nothing else.

PYTHON ?= python3
BIN := .venv/bin
# Lets a second `make` in the same checkout use what the first one installed.
RUNTIME := .venv/.runtime
DEV := .venv/.dev

.PHONY: install demo serve test lint chaos lock clean

install: $(RUNTIME)

demo: $(RUNTIME)
	@$(BIN)/esker demo

serve: $(RUNTIME)
	@exec $(BIN)/esker serve

# A test waits for sockets and for Postgres; four processes keep two cores busy meanwhile. Tests are compiled once: each
# process would spend ten seconds on that at every run.
test: export PYTHONDONTWRITEBYTECODE =
test: $(DEV)
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)

lint: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	.ci/check-commits
	$(BIN)/python .ci/check-prose

# The slow fault loops and all properties at full length; `make test` runs a short form of them.
chaos: LONG = tests/chaos tests/evals tests/properties tests/agents/test_foreign_transcripts.py tests/worker/test_lock_order.py \
    tests/api/test_memories.py tests/api/test_observer_answers.py tests/unit/test_extractive_observer.py \
    tests/unit/test_loops.py
chaos: $(DEV)
	$(BIN)/python -m pytest $(LONG) --full -n 2 $(ARGS)
	$(BIN)/python -m pytest -m hypothesis --full -n 4 $(ARGS)

# Pin the version of every package, for every system and extra. The CPU build of torch calls itself 2.13.0+cpu; the
# index knows 2.13.0.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet '.[dev]'
	.venv-lock/bin/pip freeze --all --exclude esker --exclude pip | sed 's/+cpu$$//' > requirements/lock.txt
	rm -rf .venv-lock build esker.egg-info

clean:
	rm -rf .venv build *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "Esker needs Python 3.11 or newer; say which with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

$(RUNTIME): .venv/bin/python requirements/lock.txt pyproject.toml
	$(BIN)/pip install --disable-pip-version-check -q -c requirements/lock.txt -e .
	@touch $@

$(DEV): $(RUNTIME)
	$(BIN)/pip install --disable-pip-version-check -q -c requirements/lock.txt -e '.[dev]'
	@touch $@
