"""Settings of the test run: the product's own, without Redis and with cheap passwords."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

_folder = Path(tempfile.mkdtemp(prefix="ks-test-"))
atexit.register(shutil.rmtree, _folder, ignore_errors=True)

os.environ["KUBESCHED_MODE"] = "test"
os.environ.setdefault("KUBESCHED_DATA_DIR", str(_folder))
os.environ.setdefault("KUBESCHED_RUNTIME_DIR", str(_folder / "run"))

from kubesched_site.settings import *  # noqa: E402, F403
from kubesched_site.settings import DATABASES  # noqa: E402

# A file, not memory: threads of one test must see one database, and WAL needs a file.
if DATABASES["default"]["ENGINE"].endswith(".sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(_folder / "test.sqlite3")}

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# One process and one thread per test, so memory will do; the real layers are tested end to end.
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CELERY_BROKER_URL = "memory://"
WHITENOISE_USE_FINDERS = False
