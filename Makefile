# The two commands of a newcomer: `make demo`, `make test`.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
WORKSPACE ?= workspace
# Where the hashes are known of (Linux on x86-64), pip takes no file but those.
HASHED := $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),1)
LOCKS := $(if $(HASHED),requirements/hashes,requirements)
INSTALL := -m pip install --quiet --no-deps $(if $(HASHED),--require-hashes)

.PHONY: chaos demo test test-slow test-torch test-s3 test-studio test-hosting test-ray s3 torch ray studio server audit hashes check clean

demo: $(VENV)/base  ## Build a small real data set from photos inside installed packages
	$(BIN)/fedbench demo --workspace $(WORKSPACE)

test: $(VENV)/dev  ## Run the tests (minutes)
	$(BIN)/python -m pytest -n auto

test-slow: $(VENV)/dev  ## Run the tests that take long: kills, servers, big folders
	$(BIN)/python -m pytest -m slow

test-torch: $(VENV)/dev $(VENV)/torch  ## Run the tests of what the model extra is for, on tiny random models
	$(BIN)/python -m pytest -m torch tests/torch

test-s3: $(VENV)/dev $(VENV)/s3-dev  ## Run the tests of a workspace in an object store, against one on this machine
	$(BIN)/python -m pytest -m s3 tests/objects

test-studio: $(VENV)/dev  ## Run the tests of human review against a real Label Studio (installs it: 1 GB)
	$(BIN)/python -m pytest -m studio tests/review

test-hosting: $(VENV)/dev .venv-audit/done  ## Lint infra/, and run its processes here: Postgres from Debian's packages
	PATH="$(CURDIR)/.venv-audit/bin:$$PATH" $(BIN)/python -m pytest -m hosting tests/hosting

chaos: $(VENV)/dev $(VENV)/s3-dev  ## Builds of 300 sources, killed, starved and damaged: ROUNDS=20 MINUTES=10 SEED=...
	CHAOS_ROUNDS=$(ROUNDS) CHAOS_MINUTES=$(MINUTES) CHAOS_SEED=$(SEED) $(BIN)/python -m pytest -m chaos tests/chaos

audit: .venv-audit/done  ## Known vulnerabilities of what the locks pin; OSV=all.zip where no service can be reached
	.venv-audit/bin/python requirements/audit.py $(if $(OSV),--osv $(OSV))

hashes: $(VENV)/base  ## Write requirements/hashes anew after a lock has changed
	$(BIN)/python requirements/hash.py

test-ray: $(VENV)/dev $(VENV)/ray  ## Run the tests of builds on Ray: two nodes on this machine, workers and nodes killed
	$(BIN)/python -m pytest -m ray tests/scaling

server: $(VENV)/base  ## A Prefect server with workers and everything deployed; Ctrl-C ends all of it
	$(BIN)/fedbench server up --workspace $(WORKSPACE)

studio: $(VENV)/base  ## Label Studio for human review, with three annotators; Ctrl-C stops it
	$(BIN)/fedbench review up --workspace $(WORKSPACE) --with-annotators 3

s3: $(VENV)/s3  ## Install the extra for a workspace in an object store (s3://BUCKET/FOLDER)

torch: $(VENV)/torch  ## Install the model extra: PyTorch, transformers, diffusers, peft (5 GB)

ray: $(VENV)/ray  ## Install the Ray extra, for `runner: ray` (240 MB)

check: $(VENV)/dev  ## Style, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/base: requirements/base.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --requirement $(LOCKS)/base.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

$(VENV)/dev: $(VENV)/base requirements/api.txt requirements/dev.txt
	$(BIN)/python $(INSTALL) --requirement $(LOCKS)/api.txt --requirement $(LOCKS)/dev.txt
	touch $@

$(VENV)/s3: $(VENV)/base requirements/s3.txt
	$(BIN)/python $(INSTALL) --requirement $(LOCKS)/s3.txt
	touch $@

$(VENV)/s3-dev: $(VENV)/s3 requirements/s3-dev.txt
	$(BIN)/python $(INSTALL) --requirement $(LOCKS)/s3-dev.txt
	touch $@

$(VENV)/torch: $(VENV)/base requirements/torch.txt
	$(BIN)/python -m pip install --quiet $$(grep -E '^torch(vision)?==' requirements/torch.txt)
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements/torch.txt
	touch $@

.venv-audit/done: requirements/hashes/audit.txt
	test -x .venv-audit/bin/python || $(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --no-deps --require-hashes --requirement requirements/hashes/audit.txt
	touch $@

$(VENV)/ray: $(VENV)/base requirements/ray.txt
	$(BIN)/python $(INSTALL) --requirement $(LOCKS)/ray.txt
	touch $@

clean:  ## Remove the environments; the workspace stays
	rm -rf $(VENV) .venv-audit
