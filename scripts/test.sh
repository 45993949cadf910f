#!/bin/sh
# The whole suite: servers where they may be installed, the checks, then every test.
# Arguments go to pytest: make test ARGS="tests/core -k queue".
set -eu
cd "${0%/*}/.."

.venv/bin/python scripts/servers.py
sh scripts/check.sh
exec .venv/bin/python -m pytest "$@"
