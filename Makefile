# One command each. Every target makes what it needs in .venv first; nothing but Python 3.11 or newer has to be there.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo cluster fast fix check unit test soak explore hunt story golden bench crds docs release lock clean
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1	/' | expand -t 16

demo: $(READY) ## An hour of a web shop on the embedded cluster, in a few seconds
	@$(BIN)/joiner simulate examples/19-an-hour-of-a-web-shop

cluster: $(READY) ## A real Kubernetes control plane with Joiner in it, a kubeconfig and commands to try; Ctrl-C ends it (AWS=1: with EC2)
	@$(BIN)/python -m tools.control_plane try $(if $(AWS),--aws)

fast: $(READY) ## A minute: lint, unit, contract and house tests; no laws, stories or simulations
	$(BIN)/ruff format --check src tests tools benchmarks
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/python -m pytest -n auto -m "not cluster and not soak" tests/unit tests/contract tests/test_house.py

fix: $(READY) ## Format, repair what the linter can, write generated files anew
	$(BIN)/ruff format src tests tools benchmarks
	$(BIN)/ruff check --fix src tests tools benchmarks
	$(BIN)/python tools/gen_crds.py
	$(BIN)/python tools/gen_reference.py

check: $(READY) ## Format, lint, types, import rules, generated files
	$(BIN)/ruff format --check src tests tools benchmarks
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/gen_crds.py --check
	$(BIN)/python tools/gen_reference.py --check

unit: $(READY) ## The tests, once, on the Python of .venv
	$(BIN)/python -m pytest -n auto --dist loadgroup

test: check ## Everything that must hold, on the lowest and the highest Python of this machine
	-$(BIN)/python -m tools.control_plane build etcd kube-apiserver kube-controller-manager kube-scheduler kwok helm
	$(BIN)/python tools/every_python.py

soak: $(READY) ## What takes long: cases and chaos on a real control plane
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m "soak or cluster" tests/contract tests/cluster

explore: $(READY) ## New examples of the laws, new hunts and scenarios; prints its seed (SEED=, N= hunts)
	$(BIN)/python tools/explore.py $(if $(SEED),--seed $(SEED)) $(if $(N),--hunts $(N))

hunt: $(READY) ## Play random worlds with faults (SEED=7 the first, N=1 how many, WORSE=outage, TRACE=file)
	$(BIN)/joiner simulate --hunt $(or $(N),1) --seed $(or $(SEED),1) $(if $(WORSE),--worse $(WORSE)) \
		$(if $(TRACE),--trace $(TRACE))

story: $(READY) ## Play a story (FILE=tests/stories/spread.yaml, SEED=1, TRACE=file)
	$(BIN)/joiner simulate $(or $(FILE),$(error name a story: make story FILE=tests/stories/spread.yaml)) \
		--seed $(or $(SEED),1) $(if $(TRACE),--trace $(TRACE))

bench: $(READY) ## Measure; numbers are kept in benchmarks/results (ORACLE=path compares with another scheduler)
	ORACLE="$(ORACLE)" $(BIN)/python -m benchmarks

golden: $(READY) ## Compare plans, traces and output with their recorded digests (ACCEPT=1 records them)
	$(BIN)/python -m tests.golden.digests $(if $(ACCEPT),--write)

crds: $(READY) ## Write the CRDs of charts/joiner-crds anew from the model
	$(BIN)/python tools/gen_crds.py

docs: $(READY) ## Write the reference pages, and the output shown in all pages, anew
	$(BIN)/python tools/gen_reference.py

release: $(READY) ## Join the fragments of changelog.d into CHANGELOG.md (VERSION=0.2.0)
	$(BIN)/python tools/release.py $(or $(VERSION),$(error name the version: make release VERSION=0.2.0))

lock: $(READY) ## Pin the versions that are installed, anew, from pyproject.toml
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
		--group dev pyproject.toml -o requirements/dev.txt
	echo uv | $(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header - -o requirements/uv.txt

clean: ## Remove what these targets made
	rm -rf .venv .venv-* .mypy_cache .ruff_cache .hypothesis build dist

$(READY): pyproject.toml requirements/dev.txt requirements/uv.txt tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py .venv
	@touch $@
