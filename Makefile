# What one does here. Each makes the environment it needs, below .venv/.

PYTHON ?= python3
LANGUAGES := $(notdir $(patsubst %/_language.yml,%,$(wildcard docs/*/_language.yml)))
SITE := .venv/site
RECORD := .venv/record
TEST := .venv/test

# The time stamp of everything built: that of the commit, so that two builds of it are the same bytes.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
export NO_MKDOCS_2_WARNING := 1
export DISABLE_MKDOCS_2_WARNING := true

.PHONY: help site serve record test test-all lint check chromium clean

help:
	@echo "make site                build the site, in every language, into site/"
	@echo "make serve               serve it while you write (LANGUAGE=ja: one language, at once)"
	@echo "make record              run what is stale on this machine (ARGS='--plan', ARGS='guide/script.py')"
	@echo "make check               every problem of the tree, as path:line"
	@echo "make test                everything a pull request must hold"
	@echo "make test-all            that, and every script at its smallest"

$(SITE)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[site]'
	@touch $@

$(RECORD)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(RECORD)
	$(RECORD)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[record]'
	@touch $@

$(TEST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TEST)
	$(TEST)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $@

# BENCHBOOK_EXECUTE=stale, or all: measure first, with the recording environment unless told of another.
NEEDED := $(SITE)/.installed
ifneq ($(filter stale all,$(BENCHBOOK_EXECUTE)),)
ifeq ($(BENCHBOOK_PYTHON),)
NEEDED += $(RECORD)/.installed
endif
endif

site: $(NEEDED)
	$(SITE)/bin/mkdocs build --quiet

# Serving one language leaves the others out, but for English, which the others fall back to.
serve: $(NEEDED)
	$(if $(LANGUAGE),env $(foreach code,$(filter-out en $(LANGUAGE),$(LANGUAGES)),BUILD_$(shell echo $(code) | tr a-z- A-Z_)=false)) \
	$(SITE)/bin/mkdocs serve

record: $(RECORD)/.installed
	$(RECORD)/bin/benchbook record $(ARGS)

lint: $(TEST)/.installed
	$(TEST)/bin/ruff check
	$(TEST)/bin/ruff format --check
	$(TEST)/bin/mypy

check: $(SITE)/.installed
	$(SITE)/bin/benchbook check

# The browser that the tests drive: one that is there already, or Debian's, with fonts for every language.
chromium:
	@if [ -z "$$CHROMIUM" ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update -qq && $$sudo apt-get install -y -qq chromium fonts-noto-core fonts-noto-cjk >/dev/null; \
	fi

test: $(TEST)/.installed chromium lint
	$(TEST)/bin/benchbook check
	$(TEST)/bin/pytest

test-all: test
	$(TEST)/bin/benchbook record --smallest

clean:
	rm -rf site .cache .pytest_cache .mypy_cache .ruff_cache
