"""`schemas.json`, read once: what the official client's models say of fields.

`scripts/api_schemas.py` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

__all__ = ["DESCRIPTIONS", "PACKAGES", "TYPES"]


def _read() -> dict[str, Any]:
    digest: dict[str, Any] = json.loads((Path(__file__).parent / "schemas.json").read_text())
    return digest


_DIGEST: Final = _read()

#: type -> field -> its type, as in "[]Container"; one that is required ends with "!"
TYPES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(_DIGEST["types"])
#: type -> package of its definition in OpenAPI
PACKAGES: Final[Mapping[str, str]] = MappingProxyType(_DIGEST["packages"])
#: "Type.field" -> its description, of fields whose description columns of tables have
DESCRIPTIONS: Final[Mapping[str, str]] = MappingProxyType(_DIGEST["descriptions"])
