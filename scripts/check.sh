#!/bin/sh
# Style, types and layers; every finding of all four tools is shown before it fails.
cd "${0%/*}/.."
python=.venv/bin/python
failed=""

"$python" -m ruff check . || failed="$failed ruff-check"
"$python" -m ruff format --check --quiet . || {
    "$python" -m ruff format --diff --quiet . 2>/dev/null | head -n 40
    failed="$failed ruff-format"
}
"$python" -m mypy || failed="$failed mypy"
"$python" -c 'from importlinter.cli import lint_imports_command as lint; lint()' ||
    failed="$failed import-linter"

if [ -n "$failed" ]; then
    echo "make check failed:$failed" >&2
    exit 1
fi
