# One command each. Every target makes what it needs in .venv first; nothing but Python 3.11 or newer has to be there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test check bench unit lock crds golden clean
.DEFAULT_GOAL := help

help: ## Say what there is
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 16

demo: $(READY) ## An hour in the life of a web shop, told in a few seconds on the embedded cluster
	@$(BIN)/joiner simulate examples/19-an-hour-of-a-web-shop

test: check ## Everything that must hold, on the lowest and the highest Python of this machine
	$(BIN)/python tools/every_python.py

check: $(READY) ## Format, lint, types, walls of the house, generated files
	$(BIN)/ruff format --check src tests tools benchmarks
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/gen_crds.py --check

unit: $(READY) ## The tests, once, on the Python of .venv
	$(BIN)/python -m pytest -n auto

bench: $(READY) ## Measure; numbers are kept in benchmarks/results (ORACLE=path compares with another scheduler)
	ORACLE="$(ORACLE)" $(BIN)/python -m benchmarks

golden: $(READY) ## Compare plans, traces and output with their recorded digests (ACCEPT=1 records them)
	$(BIN)/python -m tests.golden.digests $(if $(ACCEPT),--write)

crds: $(READY) ## Write the CRDs of charts/joiner-crds anew from the model
	$(BIN)/python tools/gen_crds.py

lock: $(READY) ## Pin the versions that are installed, anew, from pyproject.toml
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group dev pyproject.toml -o requirements/dev.txt
	echo uv | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header - -o requirements/uv.txt

clean: ## Throw away what was made here
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .hypothesis build dist

$(READY): pyproject.toml requirements/dev.txt requirements/uv.txt tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py .venv
	@touch $@
