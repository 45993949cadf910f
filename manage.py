#!/usr/bin/env python3
"""KubeSched's command line."""

import argparse
import os
import sys

# What a newcomer runs in a fresh clone. Without a mode and without any of production's
# settings these work on the demo's data folder; everything else expects production's settings.
LOCAL_COMMANDS = frozenset(
    {
        "benchmark",
        "capacity",
        "check_config",
        "demo",
        "evaluate",
        "help",
        "import_manifests",
        "import_trace",
        "makemigrations",
        "replay",
        "sandbox_api",
    }
)
INTERRUPTED = 130
PRODUCTION_VARIABLES = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL")


def default_mode(command: str, environ: "os._Environ[str]") -> str:
    """Return the mode for ``command`` where KUBESCHED_MODE does not say."""
    if command == "demo":
        return "demo"
    configured = any(environ.get(name) for name in PRODUCTION_VARIABLES)
    return "demo" if command in LOCAL_COMMANDS and not configured else "production"


def use_data_dir(arguments: list[str]) -> None:
    """Let `demo --data-dir FOLDER` reach the settings, which are read before the command is."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data-dir")
    folder = parser.parse_known_args(arguments)[0].data_dir
    if folder:
        os.environ["KUBESCHED_DATA_DIR"] = folder


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kubesched_site.settings")
    command = sys.argv[1] if len(sys.argv) > 1 else "help"
    if command == "demo":
        use_data_dir(sys.argv[2:])
    os.environ.setdefault("KUBESCHED_MODE", default_mode(command, os.environ))
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit(
            f"Django is not installed for {sys.executable} ({error}): "
            "run `make demo`, or use .venv/bin/python."
        ) from None
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


if __name__ == "__main__":
    main()
