"""Reading settings from environment variables, and stopping with one clear line.

A start that cannot succeed ends with a sentence that names the variable, never with a
traceback: the person who reads it is setting the product up and has not seen this code.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import tempfile
import warnings
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import unquote, urlsplit

import environ

T = TypeVar("T")

MODES: Final = ("production", "demo", "test")
SECRET_FILE: Final = "secret_key"  # noqa: S105 - a file name
# A unix socket's path may have about 104 (macOS) to 108 (Linux) bytes; the rest is its name.
LONGEST_RUNTIME_DIR: Final = 80
LARGEST_PORT: Final = 65_535
REDIS_SCHEMES: Final = frozenset({"redis", "rediss", "unix"})


def stop(message: str) -> NoReturn:
    """End the process with ``message`` on standard error and exit code 1."""
    raise SystemExit(f"KubeSched cannot start: {message}")


def require(environment: Mapping[str, str], names: Mapping[str, str]) -> None:
    """Stop unless every variable in ``names`` (name -> what it is for) has a value."""
    missing = [
        f"{name} ({purpose})" for name, purpose in names.items() if not environment.get(name)
    ]
    if missing:
        stop(
            "production needs these environment variables: "
            + ", ".join(missing)
            + ". To try it out without them, run `make demo`."
        )


def read(reader: Callable[..., T], name: str, **options: Any) -> T:
    """Return ``reader(name, ...)`` of django-environ; stop where the value cannot be understood."""
    try:
        return reader(name, **options)
    except (ValueError, KeyError, environ.ImproperlyConfigured) as error:
        value = os.environ.get(name, "")
        shown = value if "URL" not in name else "<hidden, it may hold a password>"
        stop(f"the environment variable {name}={shown} cannot be read ({error}).")


def read_positive(env: environ.Env, name: str, default: int) -> int:
    """Return a whole number greater than zero."""
    number: int = read(env.int, name, default=default)
    if number <= 0:
        stop(f"the environment variable {name}={number} must be greater than zero.")
    return number


def read_networks(
    env: environ.Env, name: str, default: list[str]
) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    """Return a list of networks, such as 10.0.0.0/8,fd00::/8."""
    try:
        return [
            ipaddress.ip_network(text.strip()) for text in read(env.list, name, default=default)
        ]
    except ValueError as error:
        stop(f"the environment variable {name} is not a list of networks ({error}).")


def read_site_url(env: environ.Env, name: str) -> str:
    """Return the address of the site with its scheme and without a slash at the end, or ""."""
    url: str = read(env.str, name, default="").rstrip("/")
    if url and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        stop(f"the environment variable {name} must begin with http:// or https:// and a host.")
    return url


def read_address(env: environ.Env, name: str) -> tuple[str, int] | None:
    """Return (host, port) of HOST:PORT, [::]:PORT or :PORT (every interface); None without one."""
    text: str = read(env.str, name, default="")
    if not text:
        return None
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if ":" not in text or not (port.isascii() and port.isdigit()) or int(port) > LARGEST_PORT:
        stop(f"the environment variable {name}={text} must be HOST:PORT, such as 0.0.0.0:10259.")
    return host or "0.0.0.0", int(port)  # noqa: S104 - it was asked for


def read_choice(env: environ.Env, name: str, choices: tuple[str, ...]) -> str:
    """Return one of ``choices``, the first without the variable."""
    value: str = read(env.str, name, default="") or choices[0]
    if value not in choices:
        stop(f"the environment variable {name}={value} must be one of {', '.join(choices)}.")
    return value


def read_mode(environment: Mapping[str, str]) -> str:
    mode = environment.get("KUBESCHED_MODE") or "production"
    if mode not in MODES:
        stop(f"KUBESCHED_MODE={mode} is none of {', '.join(MODES)}.")
    return mode


def database(env: environ.Env, default: str) -> dict[str, Any]:
    """Return Django's settings of the database named by DATABASE_URL.

    SQLite gets what lets readers, the recorder and a click live side by side: a write-ahead
    log, transactions that take the write lock when they begin (a deferred one fails at once
    where it meets another writer), and patience.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unknown scheme is reported below
        config: dict[str, Any] = dict(read(env.db_url, "DATABASE_URL", default=default))
    if not config.get("ENGINE"):
        stop("DATABASE_URL does not name a database that Django knows (postgres://, sqlite:///).")
    # A host that is a socket's folder is written with %2F for its slashes.
    config["HOST"] = unquote(config.get("HOST") or "")
    if config["ENGINE"].endswith(".sqlite3"):
        config["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;",
            **config.get("OPTIONS", {}),
        }
    return config


def redis_url(environment: Mapping[str, str], default: str) -> str:
    """Return REDIS_URL; stop where it is not a Redis address."""
    url = environment.get("REDIS_URL") or default
    if urlsplit(url).scheme not in REDIS_SCHEMES:
        stop("REDIS_URL must begin with redis://, rediss:// or unix://.")
    return url


def celery_broker_url(url: str) -> str:
    """Return ``url`` as Celery spells it: a unix socket has a scheme of its own there.

    >>> celery_broker_url("unix:///run/redis.sock?db=1")
    'redis+socket:///run/redis.sock?virtual_host=1'
    """
    parts = urlsplit(url)
    if parts.scheme != "unix":
        return url
    query = f"?{parts.query.replace('db=', 'virtual_host=')}" if parts.query else ""
    credentials = f"{parts.netloc}" if parts.netloc else ""
    return f"redis+socket://{credentials}{parts.path}{query}"


def local_secret(folder: Path) -> str:
    """Return the secret key kept in ``folder``, made on first use, for its owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / SECRET_FILE
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        kept = path.read_text(encoding="ascii").strip()
        if kept:
            return kept
        stop(f"{path} is empty; delete it to have a new key made.")
    made = secrets.token_urlsafe(64)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(made + "\n")
    return made


def default_runtime_dir(data_dir: Path) -> Path:
    """Return a short folder for unix sockets that belongs to this user and this data folder."""
    mark = sha256(os.fsencode(data_dir)).hexdigest()[:10]
    session = os.environ.get("XDG_RUNTIME_DIR")
    if session and Path(session).is_dir() and os.access(session, os.W_OK):
        candidate = Path(session) / f"kubesched-{mark}"
        if len(os.fsencode(candidate)) <= LONGEST_RUNTIME_DIR:
            return candidate
    name = f"kubesched-{os.getuid()}-{mark}"
    candidate = Path(tempfile.gettempdir()) / name
    if len(os.fsencode(candidate)) <= LONGEST_RUNTIME_DIR:
        return candidate
    return Path("/tmp") / name  # noqa: S108 - made private by dashboard.runtime_dir
