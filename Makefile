# `make book` and `make test` need nothing but make and Python 3.11 to 3.14: both make .venv from
# the pinned lock, requirements.txt, and compile the engine, and do so again when either changes.

PYTHON  ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
# one test process more than cores: many tests wait, for a server or a browser
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1 )))
PORT    ?= 8000
BIN     := .venv/bin
READY   := .venv/.installed
MADE    := .venv/.compiled
UV      := $(BIN)/python -m uv pip install --quiet --python $(BIN)/python
ENGINE  := $(shell grep -rl 'compiled.numba_support import' envprobe_core book/envprobe_book --include=*.py) \
	$(wildcard envprobe_core/compiled/*.py envprobe_core/engine/*.py envprobe_core/worlds/*.py)

TSC     := npm exec --yes --package=typescript@5.9.3 -- tsc

CORE    := .venv-core/bin
CORE_TESTS := $(addprefix tests/test_,$(addsuffix .py,alone imports worlds engine new_world compare statistics))

# by day without windows, which takes half the time, and by night the whole browser
BROWSER := chromium-headless-shell
nightly: BROWSER := chromium
BROWSER_IS_THERE = $$( (command -v chromium || command -v chromium-headless-shell) >/dev/null && echo 1)

MAKEFLAGS += --jobs=2  # the browser and the packages install side by side
unexport PYTHONDONTWRITEBYTECODE  # many processes start, and each would compile the engine again

.DEFAULT_GOAL := help
.PHONY: help book test nightly golden core lint types bench serve lab fuzz kills mutants lock browser clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

$(READY): requirements.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: Python 3.11 or later is needed (set PYTHON=...)" >&2; exit 2; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(UV) --require-hashes -r requirements.txt
	$(UV) --no-deps --no-build-isolation -e .
	@touch $@

# the engine's machine code, which lies beside it; nothing that is there already is compiled again
$(MADE): $(READY) $(ENGINE)
	@$(BIN)/envprobe compile
	@touch $@

book: $(MADE) ## execute what changed and build the book (book/_build/html)
	$(BIN)/envprobe book

test: $(MADE) browser lint ## lint, then every test, those in a browser included
	ENVPROBE_REQUIRE_BROWSER=$(BROWSER_IS_THERE) \
		$(BIN)/python -m pytest -n $(WORKERS)

nightly: $(MADE) browser ## what takes long: processes, kills, a real decoder, every page and Firefox
	ENVPROBE_REQUIRE_BROWSER=$(BROWSER_IS_THERE) \
		$(BIN)/python -m pytest -n $(WORKERS) -m nightly

golden: book ## the whole book's tables, descriptions and result hashes beside those that are frozen
	ENVPROBE_REQUIRE_BOOK=1 $(BIN)/python -m pytest tests/test_golden_book.py -k "whole or hashes"

core: ## the core alone: installed into an environment with its own dependencies, and its tests
	@$(CORE)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear .venv-core
	@$(CORE)/python -m pip install --quiet --disable-pip-version-check uv
	@rm -rf build  # what an earlier build left there would be installed too
	$(CORE)/python -m uv pip install --quiet --python $(CORE)/python --constraints requirements.txt \
		--reinstall-package envprobe-core . pytest hypothesis statsmodels
	@rm -rf build
	$(CORE)/python -P -m pytest --noconftest -p no:cacheprovider --hypothesis-profile=ci -q $(CORE_TESTS)

browser: # the system's Chromium, where this user may install it; elsewhere its tests are skipped
	@if ! command -v $(BROWSER) >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		DEBIAN_FRONTEND=noninteractive; export DEBIAN_FRONTEND; \
		{ apt-get -qq update && apt-get -qq install -y $(BROWSER); } || command -v chromium >/dev/null \
			|| apt-get -qq install -y chromium; fi

lint: $(READY) types ## style, and the types of the core and of the pages' scripts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

types: # of the pages' scripts, by TypeScript, where npm brings it
	@if $(TSC) --version >/dev/null 2>&1; then echo "tsc -p book/jsconfig.json"; $(TSC) -p book/jsconfig.json; \
		else echo "without npm and TypeScript the types of the pages' scripts are not checked"; fi

bench: $(MADE) ## speed beside the former engine's, growth, moves, start, model calls (QUICK=1: three minutes)
	$(BIN)/python benchmarks/bench.py $(if $(QUICK),--quick)

serve: book ## the book on http://127.0.0.1:8000 (PORT=...)
	$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory book/_build/html

lab: $(MADE) ## JupyterLab on lab/: START, the exercises, copies of the notebooks
	$(BIN)/envprobe lab

fuzz: $(MADE) ## thirty times as many damaged files and odd values as in the tests (TIMES=...)
	ENVPROBE_FUZZ=$(or $(TIMES),30) $(BIN)/python -m pytest tests/test_fuzz.py

kills: $(MADE) ## reproduce, book, run, a run on a server: each killed 20 times at random moments (TIMES=...)
	for each in reproduce book run server; do \
		$(BIN)/python tests/kills.py $$each --times $(or $(TIMES),20) || exit 1; done

mutants: $(MADE) ## mutation testing of statistics, measures, judge, rules, kernel: one in ten (SAMPLE=all); named mistakes
	$(BIN)/python tests/mutants.py --sample $(or $(SAMPLE),7)
	$(BIN)/python tests/mistakes.py

PIN := UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile pyproject.toml --universal \
	--python-version 3.11 --generate-hashes --strip-extras --no-annotate --no-emit-index-url --no-emit-find-links --quiet

lock: $(READY) ## pin every dependency of pyproject.toml again, with hashes
	$(PIN) --all-extras --upgrade --output-file requirements.txt
	$(PIN) --extra notebooks --extra llm --constraints requirements.txt --output-file binder/requirements.txt

clean: ## everything that was made, .venv included; lab/ stays, for it may hold a reader's work
	rm -rf .venv .venv-core book/_build book/executed build *.egg-info
	rm -rf _build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
