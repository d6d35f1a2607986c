# Everything runs in a virtual environment that the first target makes: only python3 (3.11 or
# newer, with venv), make and PyPI are needed. Recipes do not quote paths, so a folder name with
# a space in it is refused below.
PYTHON       ?= python3
VENV         ?= .venv
PYTEST_FLAGS ?=
BIN          := $(VENV)/bin
STAMP        := $(VENV)/.installed
EXTRAS       := lab,test,site

ifneq ($(words $(CURDIR)),1)
$(error The path '$(CURDIR)' contains a space, which make cannot handle: move the project to a folder without one)
endif

.DEFAULT_GOAL := help
.PHONY: help setup lab test gallery notebooks lint clean

help:             ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:[^#]*##/	/' | expand -t 12

setup: $(STAMP)   ## make the environment in .venv and install everything into it

lab: $(STAMP)     ## open the notebooks in JupyterLab
	$(BIN)/python -m jupyterlab notebooks --LabApp.default_url=/lab/tree/README.md

test: $(STAMP)    ## run the unit tests, then every notebook with its outputs compared
	@$(BIN)/python -c 'import toolkit; toolkit.warm_up()'
	$(BIN)/python -m pytest tests $(PYTEST_FLAGS)
	$(BIN)/python -m pytest --nbval notebooks -n 2 --dist loadscope $(PYTEST_FLAGS)

gallery: $(STAMP) ## run every notebook and write the HTML gallery to build/gallery
	@$(BIN)/python -c 'import toolkit; toolkit.warm_up()'
	$(BIN)/python -m tools.build_gallery

notebooks: $(STAMP) ## for authors: run every notebook in place and refresh notebooks/README.md
	$(BIN)/python -m tools.run_notebooks

lint: $(STAMP)    ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:            ## remove the environment, the gallery and every cache
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "'$(PYTHON)' was not found. Name a Python 3.11 or newer: make PYTHON=python3.12 setup" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed and '$(PYTHON)' is older. Name a newer one: make PYTHON=python3.12 setup" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "This Python cannot make virtual environments (it has no ensurepip). On Debian or Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV): half a minute to three minutes, once."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

# uv, itself from PyPI, installs three times as fast as pip; where it fails, pip does the work.
# Bytecode is compiled now, because otherwise each notebook's kernel compiles it again.
$(STAMP): pyproject.toml Makefile | $(BIN)/python
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv \
	  && $(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python -e ".[$(EXTRAS)]" \
	  || { echo "uv could not install the packages; trying pip." >&2; \
	       $(BIN)/python -m pip install -q --disable-pip-version-check -e ".[$(EXTRAS)]"; }
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp tools/lab_settings.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@
