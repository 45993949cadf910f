"""Make .venv and install the locked packages: ``setup.py runtime`` or ``setup.py dev``.

Does nothing, quickly, while the lock file and the Python are the ones of the last time.
Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
REQUIREMENTS = ROOT / "requirements"
# What installing one kind also covers.
COVERS = {"runtime": ("runtime",), "dev": ("dev", "runtime")}
# The packages that the product's processes load from here.
OWN = ("kubesched_site", "dashboard", "scheduler_core")
# pip's settings, and where uv looks for the same thing.
UV_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "HTTPS_PROXY",
}


def main() -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind not in COVERS:
        raise SystemExit("usage: setup.py runtime|dev")
    usable = works(VENV_PYTHON)
    if usable and stamp(kind).exists() and stamp(kind).read_text() == fingerprint(kind):
        return
    if not usable:
        make_environment()
    say(f"Installing the packages of requirements/{kind}.txt ...")
    install(kind)
    compile_own()
    for covered in COVERS[kind]:
        stamp(covered).write_text(fingerprint(covered))


def say(line: str) -> None:
    print(line, flush=True)


def works(python: Path) -> bool:
    """Tell whether ``python`` runs and is new enough."""
    try:
        check = "import sys; sys.exit(sys.version_info < (3, 11))"
        return subprocess.run([str(python), "-c", check], capture_output=True).returncode == 0
    except OSError:
        return False


def stamp(kind: str) -> Path:
    return VENV / f".installed-{kind}"


def fingerprint(kind: str) -> str:
    return hashlib.sha256((REQUIREMENTS / f"{kind}.txt").read_bytes()).hexdigest()


def make_environment() -> None:
    if VENV.exists() and any(VENV.iterdir()) and not (VENV / "pyvenv.cfg").exists():
        raise SystemExit(
            f"{VENV} is in the way: it is no virtual environment. Move it, then retry."
        )
    shutil.rmtree(VENV, ignore_errors=True)
    version = ".".join(map(str, sys.version_info[:3]))
    say(f"Making the virtual environment .venv with Python {version} ...")
    options = [] if has_module("ensurepip") else ["--without-pip"]
    done = subprocess.run(
        [sys.executable, "-m", "venv", *options, str(VENV)], capture_output=True, text=True
    )
    if done.returncode or not works(VENV_PYTHON):
        shutil.rmtree(VENV, ignore_errors=True)
        raise SystemExit(
            f"{sys.executable} cannot make a virtual environment; on Debian and Ubuntu install "
            f"its missing part with: apt install python{version.rsplit('.', 1)[0]}-venv"
        )


def has_module(name: str) -> bool:
    done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True)
    return done.returncode == 0


def pip_command() -> list[str]:
    """Return how to run pip for .venv: its own, else this Python's."""
    own = [str(VENV_PYTHON), "-m", "pip"]
    if subprocess.run([*own, "--version"], capture_output=True).returncode == 0:
        return own
    if has_module("pip"):
        return [sys.executable, "-m", "pip", "--python", str(VENV_PYTHON)]
    shutil.rmtree(VENV, ignore_errors=True)
    raise SystemExit(
        f"{sys.executable} has neither ensurepip nor pip; on Debian and Ubuntu install them "
        "with: apt install python3-venv"
    )


def install(kind: str) -> None:
    pip = pip_command()
    lock = REQUIREMENTS / f"{kind}.txt"
    if install_with_uv(pip, lock):
        return
    say("uv could not do it; installing with pip, which takes longer ...")
    command = [*pip, "install", "--disable-pip-version-check", "--quiet"]
    if subprocess.run([*command, "--require-hashes", "-r", str(lock)]).returncode:
        raise SystemExit(
            "The Python packages could not be installed (see above). They come from your pip's "
            "package index: is it reachable?"
        )


def install_with_uv(pip: list[str], lock: Path) -> bool:
    """Install ``lock`` with uv, several times faster than pip; tell whether that worked."""
    get_uv = [*pip, "install", "--disable-pip-version-check", "--quiet", "--require-hashes"]
    installer = [*get_uv, "-r", str(REQUIREMENTS / "installer.txt")]
    uv = VENV / "bin" / "uv"
    if subprocess.run(installer, capture_output=True).returncode or not uv.exists():
        return False
    command = [str(uv), "pip", "install", "--quiet", "--python", str(VENV_PYTHON)]
    # pip does it unasked. Where Python may not write bytecode (PYTHONDONTWRITEBYTECODE), each of
    # the demo's processes would compile all it loads, at every start.
    command.append("--compile-bytecode")
    done = subprocess.run(
        [*command, "--require-hashes", "-r", str(lock)],
        env=uv_environment(pip),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.stderr.write(done.stderr)
    return done.returncode == 0


def compile_own() -> None:
    """Compile the project's own code, for the same reason; where it cannot be, it runs as it is."""
    command = [str(VENV_PYTHON), "-m", "compileall", "-q"]
    subprocess.run([*command, *(str(ROOT / name) for name in OWN)], capture_output=True)


def uv_environment(pip: list[str]) -> dict[str, str]:
    """Return an environment in which uv uses the indexes that pip is configured to use."""
    environment = dict(os.environ)
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True).stdout
    translated: dict[str, str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        uv_name = UV_NAMES.get(name.rsplit(".", 1)[-1])
        if uv_name:
            # A value is printed as a Python string; several are in one, with white space between.
            translated[uv_name] = " ".join(value.strip("'\"").replace("\\n", " ").split())
    if "UV_FIND_LINKS" in translated:
        translated["UV_FIND_LINKS"] = translated["UV_FIND_LINKS"].replace(" ", ",")
    for name, value in translated.items():
        environment.setdefault(name, value)
    # pip looks into all indexes; the hashes in the lock make that safe.
    environment.setdefault("UV_INDEX_STRATEGY", "unsafe-best-match")
    environment["UV_PYTHON_DOWNLOADS"] = "never"
    environment.pop("VIRTUAL_ENV", None)
    if not environment.get("HOME"):
        environment["UV_CACHE_DIR"] = str(VENV / ".cache")
    return environment


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except subprocess.SubprocessError as error:
        raise SystemExit(f"{shlex.join(map(str, error.args))}") from None
