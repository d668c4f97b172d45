# The two commands of a newcomer: `make demo`, `make test`.
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin
WORKSPACE ?= workspace

.PHONY: demo test test-slow test-torch test-studio torch studio check clean

demo: $(VENV)/base  ## Build a small real data set from photos inside installed packages
	$(BIN)/fedbench demo --workspace $(WORKSPACE)

test: $(VENV)/dev  ## Run the tests (minutes)
	$(BIN)/python -m pytest -n auto

test-slow: $(VENV)/dev  ## Run the tests that take long: kills, servers, big folders
	$(BIN)/python -m pytest -m slow

test-torch: $(VENV)/dev $(VENV)/torch  ## Run the tests of what the model extra is for, on tiny random models
	$(BIN)/python -m pytest -m torch tests/torch

test-studio: $(VENV)/dev  ## Run the tests of human review against a real Label Studio (installs it: 1 GB)
	$(BIN)/python -m pytest -m studio tests/review

studio: $(VENV)/base  ## Label Studio for human review, with three annotators; Ctrl-C stops it
	$(BIN)/fedbench review up --workspace $(WORKSPACE) --with-annotators 3

torch: $(VENV)/torch  ## Install the model extra: PyTorch, transformers, diffusers, peft (5 GB)

check: $(VENV)/dev  ## Style, types, and which room may import which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/base: requirements/base.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements/base.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

$(VENV)/dev: $(VENV)/base requirements/api.txt requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements/api.txt --requirement requirements/dev.txt
	touch $@

$(VENV)/torch: $(VENV)/base requirements/torch.txt
	$(BIN)/python -m pip install --quiet $$(grep -E '^torch(vision)?==' requirements/torch.txt)
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements/torch.txt
	touch $@

clean:  ## Remove the environment; the workspace stays
	rm -rf $(VENV)
