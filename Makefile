# make demo   train a small document-level translator and see what context does
# make test   lint, types and tests
# make test-ray  trainings and translations shared out by Ray, which it installs
# make test-slow  whole commands: trainings, servers, the pages in a browser
# make fuzz   damaged files through every reader, for some minutes: MINUTES=5
# make size   how large the package is
# make clean  remove the virtual environment; what was trained, in runs/, stays
PYTHON ?= python3
BIN = .venv/bin

.PHONY: demo test test-ray test-slow fuzz coverage benchmarks size clean

demo: .venv/installed
	$(BIN)/docnmt demo $(if $(JSON),--json $(JSON))

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OMP_NUM_THREADS=1 $(BIN)/pytest -m "not slow" -n auto --dist worksteal

# Ray is 258 MB: installed for its own tests alone.
test-ray: .venv/installed-dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[ray]'
	$(BIN)/pytest tests/cluster

test-slow: .venv/installed-dev
	OMP_NUM_THREADS=1 $(BIN)/pytest -m slow -n auto --dist worksteal

fuzz: .venv/installed-dev
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5)

coverage: .venv/installed-dev
	$(BIN)/pytest --cov --cov-report=term-missing:skip-covered --cov-fail-under=90

size: .venv/installed
	$(BIN)/python tools/size.py

benchmarks: .venv/installed-dev
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/prepare.py
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/decoding.py
	$(BIN)/python benchmarks/serving.py

.venv/made:
	$(PYTHON) -c 'import sys; sys.exit("docnmt needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	touch $@

# Installed again only when what is to be installed has changed.
.venv/installed: pyproject.toml setup.py constraints.txt $(wildcard docnmt/engine/csrc/*) | .venv/made
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

.venv/installed-dev: .venv/installed | .venv/made
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf .venv
