# make venv          a virtual environment in .venv
# make install       the package and all it needs, in there (several GB with torch)
# make demo          decode a few utterances with a small model
# make lint          style, types and shell scripts
# make test          all tests
# make test-fast     the tests for work: those of seconds left out
# make test-often    all tests ten times, five of them on a busy machine
# make test-202511   the tests with ESPnet 202511, in an environment of their own
# make docs          the documentation, in docs/_build
# make screenshots   the pictures of the pages in docs/images; needs chromium
# make dist          sdist and wheel in dist/, checked and tried; see REPOSITORY_URL below
# make bench         time and memory of the searches against ESPnet's own

SHELL := /bin/bash
.DELETE_ON_ERROR:

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# ESPnet 202511 runs on Python 3.11.
OLD_VENV := .venv-202511
OLD_PYTHON := $(OLD_VENV)/bin/python
OLD_INSTALLED := $(OLD_VENV)/.installed

# A process for each core, but no more than memory has room for; a worker that has no test
# left takes some of the others'.
PYTEST := -m pytest --numprocesses logical --maxprocesses 8 --dist worksteal

# More options of pytest, for the targets of tests.
TEST_OPTIONS :=

PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions

SHELL_SCRIPTS := .ci/run .ci/ten_runs .ci/try_wheel $(wildcard recipes/*.sh recipes/*/*.sh)

# Where the repository can be read, e.g. https://github.com/someone/espnet_lenbias: what the
# package's page on an index links to. Without it that page has no images and no such links.
REPOSITORY_URL :=
STAGE := build/dist

# The first of these that is right is taken. The newest of pyenv's come last.
$(PYTHON): CANDIDATES = python3 python3.13 python3.12 python3.14 \
	$(wildcard $(PYENV)/3.1[2-9]*/bin/python3)
$(PYTHON): IS_RIGHT = sys.version_info >= (3, 12)
$(PYTHON): WANTED = 3.12 or later
$(OLD_PYTHON): CANDIDATES = python3.11 python3 $(wildcard $(PYENV)/3.11*/bin/python3)
$(OLD_PYTHON): IS_RIGHT = sys.version_info[:2] == (3, 11)
$(OLD_PYTHON): WANTED = 3.11

.PHONY: venv install demo lint test test-fast test-often test-202511 docs screenshots dist bench

venv: $(PYTHON)

$(PYTHON) $(OLD_PYTHON):
	@venv=$(@:/bin/python=); \
	for python in $(CANDIDATES); do \
		if $$python -c 'import sys; sys.exit(not ($(IS_RIGHT)))' 2>/dev/null; then \
			echo "making $$venv with $$($$python --version) ($$python)"; \
			$$python -m venv $$venv && exit; \
			echo "error: $$python could not make $$venv (Debian: install python3-venv)"; \
			rm -rf $$venv; exit 1; \
		fi; \
	done; \
	echo "error: no Python $(WANTED) found (looked for: $(CANDIDATES))"; \
	echo "install one, e.g. with pyenv (pyenv install 3.11 3.12) or your package manager"; \
	exit 1

install: $(INSTALLED)

$(INSTALLED): setup.cfg | $(PYTHON)
	$(PYTHON) -m pip install --quiet --editable ".[test,dev,docs]"
	@touch $@

$(OLD_INSTALLED): setup.cfg .ci/202511.txt | $(OLD_PYTHON)
	$(OLD_PYTHON) -m pip install --quiet --requirement .ci/202511.txt
	$(OLD_PYTHON) -m pip install --quiet --no-deps espnet==202511 espnet_tts_frontend
	@# ESPnet imports ci_sdr where speech is enhanced, which no test does
	@touch "$$($(OLD_PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/ci_sdr.py"
	$(OLD_PYTHON) -m pip install --quiet --no-deps --editable .
	@touch $@

demo: install
	$(PYTHON) recipes/mini_librispeech/demo.py

lint: install
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(VENV)/bin/shellcheck --severity=warning $(SHELL_SCRIPTS)

test: install
	$(PYTHON) $(PYTEST) $(TEST_OPTIONS)

test-fast: install
	$(PYTHON) $(PYTEST) -m "not slow" $(TEST_OPTIONS)

test-often: install
	.ci/ten_runs

test-202511: $(OLD_INSTALLED)
	$(OLD_PYTHON) $(PYTEST) $(TEST_OPTIONS)

# Of a copy of what git knows: the page is written into it, and no leftover gets in.
dist: install
	rm -rf dist $(STAGE)
	mkdir -p $(STAGE)
	git ls-files -z ':!recipes' ':!tests' | tar -c --null -T - | tar -x -C $(STAGE)
	$(PYTHON) .ci/package_page.py $(STAGE) $(REPOSITORY_URL)
	$(PYTHON) -m build --outdir dist $(STAGE)
	$(PYTHON) -m twine check --strict dist/*
	.ci/try_wheel dist/*.whl $(PYTHON)

bench: install
	$(PYTHON) recipes/speed/bench.py

# Of the reference, pages of modules that have moved would be left.
docs: install
	@rm -rf docs/reference
	$(PYTHON) -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build
	@echo "the documentation is in docs/_build/index.html"

screenshots: install
	$(PYTHON) docs/screenshots.py
