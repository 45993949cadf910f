#!/bin/sh
# Make or refresh .venv: `sh scripts/setup.sh runtime|dev`. Finds a Python, the rest is setup.py.
set -eu
cd "${0%/*}/.."

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

# A version manager's shim may be on PATH and still have nothing behind it, so each is tried.
for candidate in ${PYTHON:-} .venv/bin/python python3.13 python3.12 python3.11 python3; do
    if "$candidate" -c "$new_enough" >/dev/null 2>&1; then
        exec "$candidate" scripts/setup.py "$@"
    fi
done
echo "KubeSched needs Python 3.11 or newer, and none was found on PATH." \
    "Install one, or name it: make demo PYTHON=/path/to/python3" >&2
exit 1
