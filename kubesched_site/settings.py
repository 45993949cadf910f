"""Settings, from the environment alone.

Production is what you get when nothing is said; it needs SECRET_KEY, DATABASE_URL, REDIS_URL
and ALLOWED_HOSTS. KUBESCHED_MODE=demo (set by `manage.py demo`) keeps everything in one data
folder of this machine instead, and serves plain HTTP.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import environ
from csp.constants import NONE, SELF

from kubesched_site.environment import (
    celery_broker_url,
    database,
    default_runtime_dir,
    local_secret,
    read,
    read_address,
    read_choice,
    read_mode,
    read_networks,
    read_positive,
    read_site_url,
    redis_url,
    require,
)

env = environ.Env()
BASE_DIR = Path(__file__).resolve().parent.parent

# --- mode and folders -----------------------------------------------------------------------
KUBESCHED_MODE = read_mode(os.environ)
PRODUCTION = KUBESCHED_MODE == "production"

if PRODUCTION:
    require(
        os.environ,
        {
            "SECRET_KEY": "50 or more random characters",
            "DATABASE_URL": "postgres://USER:PASSWORD@HOST/NAME",
            "REDIS_URL": "redis://HOST:6379/0",
            "ALLOWED_HOSTS": "the site's host names, with commas between",
        },
    )

# The database file, logs and secrets of the demo; logs of `manage.py serve` where wanted.
KUBESCHED_DATA_DIR = Path(
    os.environ.get("KUBESCHED_DATA_DIR") or BASE_DIR / ".kubesched"
).absolute()
# Unix sockets (embedded broker, sandboxes). Short, because a socket's path may have 104 bytes;
# 0700. `dashboard.runtime_dir.private_dir` makes it.
KUBESCHED_RUNTIME_DIR = Path(
    os.environ.get("KUBESCHED_RUNTIME_DIR") or default_runtime_dir(KUBESCHED_DATA_DIR)
).absolute()

DEBUG = read(env.bool, "DEBUG", default=False)
SECRET_KEY = os.environ.get("SECRET_KEY") or local_secret(KUBESCHED_DATA_DIR)
# Keys of before: what they signed and encrypted can still be read.
SECRET_KEY_FALLBACKS = read(env.list, "SECRET_KEY_FALLBACKS", default=[])
ALLOWED_HOSTS = read(env.list, "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
# With a scheme: https://kubesched.example.org. Needed behind a proxy that ends TLS.
CSRF_TRUSTED_ORIGINS = read(env.list, "CSRF_TRUSTED_ORIGINS", default=[])

# --- KubeSched's own ------------------------------------------------------------------------
# Cycles whose whole node x plugin matrix is kept; older ones keep counts and the best 20 nodes.
KUBESCHED_MATRIX_CYCLES = read_positive(env, "KUBESCHED_MATRIX_CYCLES", 500)
# Cycles of a run whose row is kept, and writes to a sandbox beyond those that a restart needs.
KUBESCHED_CYCLES_KEPT = read_positive(env, "KUBESCHED_CYCLES_KEPT", 200_000)
KUBESCHED_WRITES_KEPT = read_positive(env, "KUBESCHED_WRITES_KEPT", 100_000)
# Rows that the recorder holds before the scheduler waits for it (back-pressure).
KUBESCHED_RECORDER_QUEUE = read_positive(env, "KUBESCHED_RECORDER_QUEUE", 5000)
# Frames per second that one page gets at most, whatever the load.
KUBESCHED_FRAMES_PER_SECOND = read_positive(env, "KUBESCHED_FRAMES_PER_SECOND", 10)
# A lease that was not renewed for this long is free: how long a killed worker's work rests.
KUBESCHED_LEASE_SECONDS = read_positive(env, "KUBESCHED_LEASE_SECONDS", 4)
# Sandboxes and runs that one loop worker carries at the same time.
KUBESCHED_LOOP_CONCURRENCY = read_positive(env, "KUBESCHED_LOOP_CONCURRENCY", 16)
# The site's address as others see it: the links in webhooks begin with it.
KUBESCHED_SITE_URL = read_site_url(env, "KUBESCHED_SITE_URL")
# Where a loop worker answers besides its unix socket: metrics, probes, calls as an extender.
KUBESCHED_WORKER_LISTEN = read_address(env, "KUBESCHED_WORKER_LISTEN")
# The same address as kube-schedulers reach it, where that is another one.
KUBESCHED_WORKER_URL = read_site_url(env, "KUBESCHED_WORKER_URL")
# Where the default worker answers probes, for a supervisor of it and of beat.
KUBESCHED_DEFAULT_LISTEN = read_address(env, "KUBESCHED_DEFAULT_LISTEN")
# PEM files for the loop worker's address; who has a certificate of the authority needs no token.
KUBESCHED_WORKER_TLS_CERT = os.environ.get("KUBESCHED_WORKER_TLS_CERT", "")
KUBESCHED_WORKER_TLS_KEY = os.environ.get("KUBESCHED_WORKER_TLS_KEY", "")
KUBESCHED_WORKER_CLIENT_CA = os.environ.get("KUBESCHED_WORKER_CLIENT_CA", "")
# Where sandboxes speak the Kubernetes API; a free port of this machine without it.
KUBESCHED_SANDBOX_API_LISTEN = read_address(env, "KUBESCHED_SANDBOX_API_LISTEN")
# Further names and addresses by which clients reach it; the first is shown in kubeconfigs.
KUBESCHED_SANDBOX_API_NAMES = read(env.list, "KUBESCHED_SANDBOX_API_NAMES", default=[])
# Reads /metrics and /configz, like an API token with the scope "read".
KUBESCHED_METRICS_TOKEN = os.environ.get("KUBESCHED_METRICS_TOKEN", "")
# Networks that webhooks may reach although they are not public. The demo may reach itself.
KUBESCHED_WEBHOOK_NETWORKS = read_networks(
    env,
    "KUBESCHED_WEBHOOK_NETWORKS",
    default=["127.0.0.0/8", "::1/128"] if KUBESCHED_MODE == "demo" else [],
)
# Seconds that a receiver has for its answer; seconds after which a message is given up.
KUBESCHED_WEBHOOK_TIMEOUT_SECONDS = read_positive(env, "KUBESCHED_WEBHOOK_TIMEOUT_SECONDS", 10)
KUBESCHED_WEBHOOK_MAX_AGE_SECONDS = read_positive(env, "KUBESCHED_WEBHOOK_MAX_AGE_SECONDS", 86_400)
# Where the files of the public GPU cluster trace lie; they are not part of the repository.
KUBESCHED_TRACES = Path(
    os.environ.get("KUBESCHED_TRACES") or BASE_DIR.parent / "shared" / "traces"
).absolute()
# Set by `manage.py demo` for this one run: makes its login link valid (dashboard.demo_login).
KUBESCHED_DEMO_RUN = os.environ.get("KUBESCHED_DEMO_RUN", "") if KUBESCHED_MODE == "demo" else ""

# --- applications ---------------------------------------------------------------------------
INSTALLED_APPS = [
    # For its `runserver`. Everybody else starts 0.3 s sooner without Twisted.
    *(["daphne"] if "runserver" in sys.argv else []),
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "dashboard",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "kubesched_site.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "kubesched_site.urls"
ASGI_APPLICATION = "kubesched_site.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database -------------------------------------------------------------------------------
# No ATOMIC_REQUESTS: with SQLite every request would take the write lock.
DATABASES = {
    "default": database(env, default=f"sqlite:///{KUBESCHED_DATA_DIR / 'kubesched.sqlite3'}")
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- Redis: broker and channel layer --------------------------------------------------------
REDIS_URL = redis_url(os.environ, default=f"unix://{KUBESCHED_RUNTIME_DIR / 'broker.sock'}")
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        # Not channels_redis.core: it closes idle websockets under redis-py 8, whose default
        # socket timeout equals that layer's blocking read.
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL], "prefix": "kubesched"},
    },
}

# --- Celery (read with the prefix CELERY_) --------------------------------------------------
CELERY_BROKER_URL = celery_broker_url(REDIS_URL)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TIMEZONE = "UTC"
CELERY_ENABLE_UTC = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_CREATE_MISSING_QUEUES = True
# Tasks that live as long as a sandbox or a run have a worker of their own.
CELERY_TASK_ROUTES = {
    "dashboard.tasks.run_scheduler": {"queue": "loop"},
    "dashboard.tasks.host_sandbox": {"queue": "sandbox"},
}
# A queue for each worker: a run is placed in or beside the process that owns its sandbox.
CELERY_WORKER_DIRECT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# The schedule is in memory: nothing in it outlives a restart, and there is no file to corrupt.
CELERY_BEAT_SCHEDULER = "celery.beat.Scheduler"
CELERY_BEAT_SCHEDULE: dict[str, dict[str, Any]] = {
    # Enqueues what should run and whose lease is stale; this is what revives a killed worker's.
    "ensure-loops": {
        "task": "dashboard.tasks.ensure_loops",
        "schedule": 2.0,
        "options": {"expires": 4},
    },
    "deliver-webhooks": {
        "task": "dashboard.tasks.deliver_webhooks",
        "schedule": 1.0,
        "options": {"expires": 2},
    },
    "prune": {
        "task": "dashboard.tasks.prune",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
}

# --- people ---------------------------------------------------------------------------------
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
SESSION_COOKIE_NAME = "kubesched_session"
CSRF_FAILURE_VIEW = "kubesched_site.errors.csrf_failure"

# --- what a browser may do ------------------------------------------------------------------
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        # 'self' covers ws: and wss: of this same host and port (CSP level 3).
        "connect-src": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "base-uri": [NONE],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"

# HTTPS. The switches are for a site that is reached through plain HTTP on a closed network.
SESSION_COOKIE_SECURE = read(env.bool, "SESSION_COOKIE_SECURE", default=PRODUCTION)
CSRF_COOKIE_SECURE = read(env.bool, "CSRF_COOKIE_SECURE", default=PRODUCTION)
SECURE_SSL_REDIRECT = read(env.bool, "SECURE_SSL_REDIRECT", default=PRODUCTION)
SECURE_REDIRECT_EXEMPT = [r"^(healthz|livez|readyz)(/[a-z-]+)?$"]
SECURE_HSTS_SECONDS = read(env.int, "SECURE_HSTS_SECONDS", default=31_536_000 if PRODUCTION else 0)
SECURE_HSTS_INCLUDE_SUBDOMAINS = read(
    env.bool, "SECURE_HSTS_INCLUDE_SUBDOMAINS", default=PRODUCTION
)
SECURE_HSTS_PRELOAD = read(env.bool, "SECURE_HSTS_PRELOAD", default=PRODUCTION)
# Only where a proxy in front always sets (and so overwrites) X-Forwarded-Proto.
if read(env.bool, "KUBESCHED_BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- files ----------------------------------------------------------------------------------
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Where `collectstatic` puts them; outside production there is nothing to collect.
STATIC_ROOT = (
    Path(os.environ.get("KUBESCHED_STATIC_ROOT") or BASE_DIR / "staticfiles").absolute()
    if PRODUCTION
    else None
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "kubesched_site.storage.ModuleManifestStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
# Outside production files are served from where they lie, without `collectstatic`.
WHITENOISE_USE_FINDERS = not PRODUCTION
# Files that change while the demo runs are served as they are.
WHITENOISE_AUTOREFRESH = not PRODUCTION
WHITENOISE_MAX_AGE = 60 if PRODUCTION else 0

# --- language, time, logs -------------------------------------------------------------------
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
# A line for every step of every pod, all with one id: "RUN-CYCLE".
KUBESCHED_LOG_PODS = read(env.bool, "KUBESCHED_LOG_PODS", default=False)
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"},
        "json": {"()": "dashboard.logs.JsonFormatter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": read_choice(env, "KUBESCHED_LOG_FORMAT", ("line", "json")),
        }
    },
    # Beat calls every two seconds; two more lines for each call would bury everything else.
    "loggers": {
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        # Its debug lines hold whole URLs, and a webhook's may hold a secret.
        "urllib3.connectionpool": {"level": "WARNING"},
    },
    "root": {
        "handlers": ["stderr"],
        "level": read(env.str, "KUBESCHED_LOG_LEVEL", default="INFO").upper(),
    },
}
