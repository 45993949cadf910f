"""Syntax of names, labels and resource names in Kubernetes.

Each check returns "" when the text is right, else the reason in kube-apiserver's wording.
Results are cached: the same label keys come back for every pod.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = [
    "check_dns_label",
    "check_dns_subdomain",
    "check_label_key",
    "check_label_value",
    "is_int64",
    "parse_int64",
]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = rf"({_NAME})?"
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)

_LABEL_RE = re.compile(_LABEL, re.ASCII)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN, re.ASCII)
_NAME_RE = re.compile(_NAME, re.ASCII)
_VALUE_RE = re.compile(_VALUE, re.ASCII)


@lru_cache(maxsize=16384)
def check_dns_label(text: str) -> str:
    """RFC 1123 label: namespaces, container names."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    if _LABEL_RE.fullmatch(text):
        return ""
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
        "and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', "
        f"regex used for validation is '{_LABEL}')"
    )


@lru_cache(maxsize=65536)
def check_dns_subdomain(text: str) -> str:
    """RFC 1123 subdomain: names of pods, nodes and most other objects."""
    if len(text) > 253:
        return "must be no more than 253 bytes"
    if _SUBDOMAIN_RE.fullmatch(text):
        return ""
    pattern = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
        "'-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', "
        f"regex used for validation is '{pattern}')"
    )


@lru_cache(maxsize=16384)
def check_label_key(text: str) -> str:
    """Qualified name: optional DNS prefix and `/`, then a name of at most 63 characters."""
    prefix, slash, name = text.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if "/" in prefix:
        return _QUALIFIED
    if prefix:
        problem = check_dns_subdomain(prefix)
        if problem:
            return f"prefix part {problem}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if _NAME_RE.fullmatch(name) else f"name part {_NAME_RULE}"


@lru_cache(maxsize=65536)
def check_label_value(text: str) -> str:
    """Label value: empty, or at most 63 characters that begin and end alphanumeric."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    if _VALUE_RE.fullmatch(text):
        return ""
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' "
        "or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
        "'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    )


@lru_cache(maxsize=16384)
def parse_int64(text: str) -> int | None:
    """The integer that `text` is in base 10 within 64 bits, else None (no blanks, no `_`)."""
    if len(text) > 64 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def is_int64(text: str) -> bool:
    """Whether `parse_int64` understands it."""
    return parse_int64(text) is not None


_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    "validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_QUALIFIED = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex "
    "used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
    "subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
