#!/usr/bin/env python3
"""KubeSched's command line."""

import argparse
import os
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path

# What a newcomer runs in a fresh clone. Without a mode and without any of production's
# settings these work on the demo's data folder; everything else expects production's settings.
LOCAL_COMMANDS = frozenset(
    {
        "benchmark",
        "capacity",
        "check_config",
        "demo",
        "evaluate",
        "import_manifests",
        "import_trace",
        "makemigrations",
        "replay",
        "sandbox_api",
    }
)
HELP = frozenset({"help", "version", "--version", "-h", "--help"})
INTERRUPTED = 130
PRODUCTION_VARIABLES = ("SECRET_KEY", "DATABASE_URL", "REDIS_URL")


def default_mode(command: str, environ: "os._Environ[str]") -> str:
    """Return the mode for ``command`` where KUBESCHED_MODE does not say."""
    if command == "demo":
        return "demo"
    configured = any(environ.get(name) for name in PRODUCTION_VARIABLES)
    return "demo" if command in LOCAL_COMMANDS and not configured else "production"


def asks_for_help(arguments: list[str]) -> bool:
    """No command, help or a version in any form, or a command that there is not.

    Django answers all of these in words, for which it has to load some settings.
    """
    if not arguments or arguments[0] in HELP:
        return True
    return any(word in {"-h", "--help"} for word in arguments) or not is_command(arguments[0])


def is_command(name: str) -> bool:
    """Tell whether ours or a library's is called so; without settings Django cannot."""
    folders = [Path(__file__).resolve().parent / "dashboard"]
    for library in ("django", "channels"):
        found = find_spec(library)
        if found is None or found.origin is None:
            return True
        root = Path(found.origin).parent
        folders += [root, root / "core", *root.glob("contrib/*")]
    return any((folder / "management" / "commands" / f"{name}.py").is_file() for folder in folders)


def need_nothing(environ: "os._Environ[str]") -> None:
    """Settings that ask for no environment and write nothing."""
    environ["KUBESCHED_MODE"] = "demo"
    if not environ.get("SECRET_KEY"):
        environ["SECRET_KEY"] = secrets.token_urlsafe(64)


def use_data_dir(arguments: list[str]) -> None:
    """Let `demo --data-dir FOLDER` reach the settings, which are read before the command is."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data-dir")
    folder = parser.parse_known_args(arguments)[0].data_dir
    if folder:
        os.environ["KUBESCHED_DATA_DIR"] = folder


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kubesched_site.settings")
    if asks_for_help(sys.argv[1:]):
        need_nothing(os.environ)
    else:
        command = sys.argv[1]
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
