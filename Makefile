# `make quickstart` and `make test` do all set-up themselves: system packages where they may, a virtual
# environment in .venv, the pinned packages of constraints.txt. Running them again does only what is missing.
#   PYTHON=…    the interpreter to build .venv from (3.11 or later; found by itself)
#   PIP_ARGS=…  further options of pip install, for example an index of CPU builds of torch
#   RECIPE=…    what `make quickstart` runs
#   JOBS=…      processes that run the tests (one for each core by default)

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup system quickstart test lint types unit clean

PIP_ARGS ?=
RECIPE ?= tadpole
RUN ?= runs/quickstart
JOBS ?= auto
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$name"; break; }; done)
BIN := .venv/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

quickstart: .venv/installed | system ## set up, then the whole loop on the bundled repository, offline; go on after Ctrl-C with the same command
	$(BIN)/frognano coevolve --recipe $(RECIPE) --run $(RUN)

test: lint types unit ## set up, then lint, types and tests

setup: .venv/installed-dev | system ## set up only

lint: .venv/installed-dev ## format and lint checks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: .venv/installed-dev ## type checks
	$(BIN)/mypy

unit: .venv/installed-dev | system ## the tests alone
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile

clean: ## remove the environment and caches; runs/ stays
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What pip cannot bring. As root with apt it is installed; anyone else is told the one command.
system:
	@missing=(); \
	command -v bwrap >/dev/null || missing+=(bubblewrap); \
	command -v git >/dev/null || missing+=(git); \
	if [ -z "$(PYTHON)" ]; then missing+=(python3 python3-venv); \
	elif ! "$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null; then missing+=(python3-venv); fi; \
	if [ "$${#missing[@]}" -eq 0 ]; then exit 0; fi; \
	if [ "$$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then \
		echo "installing $${missing[*]}"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$${missing[@]}" >/dev/null; \
	else \
		echo "missing: $${missing[*]}. Run this, then make again:  sudo apt-get install -y $${missing[*]}" >&2; exit 1; \
	fi

.venv/made: | system
	"$(PYTHON)" -m venv .venv
	touch $@

.venv/installed: .venv/made constraints.txt pyproject.toml
	$(INSTALL) -e '.[train,serve,report]'
	touch $@

.venv/installed-dev: .venv/installed
	$(INSTALL) -e '.[train,serve,report,dev]'
	touch $@
