"""A label selector as text."""

from __future__ import annotations

from typing import Any

__all__ = ["selector_text"]


def selector_text(selector: Any) -> str:
    """A label selector as it is written in a list request."""
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    labels = selector.get("matchLabels") or {}
    terms = [f"{key}={value}" for key, value in sorted(labels.items())]
    for rule in selector.get("matchExpressions") or []:
        key, values = rule.get("key", ""), ",".join(sorted(rule.get("values") or []))
        terms.append(
            {
                "In": f"{key} in ({values})",
                "NotIn": f"{key} notin ({values})",
                "Exists": key,
                "DoesNotExist": f"!{key}",
            }.get(str(rule.get("operator")), "")
        )
    return ",".join(sorted(filter(None, terms)))
