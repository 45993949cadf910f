# KubeSched. Every target does its own set-up in .venv; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test check lock clean

PORT ?= 8000
HOST ?= 127.0.0.1
TRACE ?=
DATA ?=
ARGS ?=
UPGRADE ?=
PYTHON ?=
export PYTHON

help:
	@echo "make demo     start the demo; Ctrl-C stops it   PORT=8000 HOST=127.0.0.1 TRACE=FOLDER DATA=FOLDER"
	@echo "make test     checks and every test             ARGS='tests/core -k queue'"
	@echo "make check    style, types, layers"
	@echo "make lock     write requirements/*.txt          UPGRADE=1 takes newer versions"
	@echo "make clean    remove .venv, the demo's data and caches"

demo:
	@sh scripts/setup.sh runtime
	@exec .venv/bin/python manage.py demo --host "$(HOST)" --port "$(PORT)" $(if $(TRACE),--trace "$(TRACE)") $(if $(DATA),--data-dir "$(DATA)")

test:
	@sh scripts/setup.sh dev
	@exec sh scripts/test.sh $(ARGS)

check:
	@sh scripts/setup.sh dev
	@exec sh scripts/check.sh

lock:
	@sh scripts/setup.sh runtime
	@exec .venv/bin/python scripts/lock.py $(if $(UPGRADE),--upgrade)

clean:
	rm -rf .venv .kubesched staticfiles test-results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
