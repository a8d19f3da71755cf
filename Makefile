# make venv      a virtual environment in .venv
# make install   the package and all it needs, in there (several GB with torch)
# make demo      decode a few utterances with a small model
# make test      the tests
# make bench     time and memory of the searches against ESPnet's own

SHELL := /bin/bash
.DELETE_ON_ERROR:

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed

# The first of these that is Python 3.12 or later. The newest of pyenv's come last.
CANDIDATES = python3 python3.13 python3.12 python3.14 \
	$(wildcard $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/3.1[2-9]*/bin/python3)
IS_NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 12))

.PHONY: venv install demo test bench

venv: $(PYTHON)

$(PYTHON):
	@for python in $(CANDIDATES); do \
		if $$python -c '$(IS_NEW_ENOUGH)' 2>/dev/null; then \
			echo "making $(VENV) with $$($$python --version) ($$python)"; \
			$$python -m venv $(VENV) && exit; \
			echo "error: $$python could not make $(VENV) (Debian: install python3-venv)"; \
			rm -rf $(VENV); exit 1; \
		fi; \
	done; \
	echo "error: no Python 3.12 or later found (looked for: $(CANDIDATES))"; \
	echo "install one, e.g. with pyenv (pyenv install 3.12) or your package manager"; \
	exit 1

install: $(INSTALLED)

$(INSTALLED): setup.cfg | $(PYTHON)
	$(PYTHON) -m pip install --quiet --editable ".[test]"
	@touch $@

demo: install
	$(PYTHON) recipes/mini_librispeech/demo.py

test: install
	$(PYTHON) -m pytest

bench: install
	$(PYTHON) recipes/speed/bench.py
