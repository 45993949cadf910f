"""What can be said of templates, styles and vendored files without a browser."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "static"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
MODULES = sorted((STATIC / "js").rglob("*.js"))
STYLES = sorted((STATIC / "css").glob("*.css"))
# Text on what it may lie on, by the names of css/tokens.css.
PAIRS = [
    ("ink", "paper"), ("ink", "sheet"), ("ink", "sheet-sunk"), ("ink-soft", "paper"),
    ("ink-soft", "sheet"), ("ink-soft", "sheet-sunk"), ("ink-faint", "paper"),
    ("ink-faint", "sheet"), ("teal", "paper"), ("teal", "sheet"), ("teal-ink", "teal"),
    ("ink", "teal-wash"), ("green", "green-wash"), ("amber", "amber-wash"), ("red", "red-wash"),
    ("violet", "violet-wash"), ("ink-soft", "grey-wash"), ("green", "sheet"), ("red", "sheet"),
    ("ink", "amber-wash"), ("ink", "red-wash"), ("paper", "red"),
]  # fmt: skip


def tokens(theme: str) -> dict[str, str]:
    text = (STATIC / "css" / "tokens.css").read_text(encoding="utf-8")
    start = {"light": ":root {", "dark": ':root[data-theme="dark"] {'}[theme]
    block = text[text.index(start) :]
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block[: block.index("}")]))


def luminance(colour: str) -> float:
    def linear(value: float) -> float:
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[i : i + 2], 16) / 255) for i in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_has_the_contrast_of_wcag_aa(theme: str, text: str, ground: str) -> None:
    colours = tokens(theme)
    one, other = luminance(colours[text]), luminance(colours[ground])
    ratio = (max(one, other) + 0.05) / (min(one, other) + 0.05)
    assert ratio >= 4.5, f"{text} on {ground} has {ratio:.2f}"


def test_dark_by_preference_is_dark_by_choice() -> None:
    text = (STATIC / "css" / "tokens.css").read_text(encoding="utf-8")
    preferred = text[text.index(':root:not([data-theme="light"]) {') :]
    block = preferred[: preferred.index("}")]
    assert dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block)) == tokens("dark")


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_template_obeys_the_content_security_policy(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert not re.search(r"\sstyle=", text), "inline style"
    assert not re.search(r"\son\w+=", text), "inline handler"
    assert not re.search(r"<style\b", text), "inline style sheet"
    assert not re.search(r"<script(?![^>]*\bsrc=)", text), "inline script"
    assert not re.search(r"https?://(?!www\.w3\.org/)", text), "another host"
    assert "|safe" not in text


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda file: file.name)
def test_static_files_of_a_template_are_there(file: Path) -> None:
    for name in re.findall(r"{% static '([^']+)' %}", file.read_text(encoding="utf-8")):
        assert (STATIC / name).is_file(), name


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(STATIC / "js")))
def test_module_writes_text_only_and_imports_what_is_there(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text, word
    for target in re.findall(r'from "([^"]+)";', text):
        assert target.startswith("."), "relative imports are what the storage rewrites"
        assert (file.parent / target).resolve().is_file(), target


def test_styles_name_their_colours_in_one_file() -> None:
    """Save for the brand's mark and the hatches of rejecting plugins, which no theme changes."""
    allowed = {"tokens.css", "shell.css", "decision.css", "heatmap.css"}
    for file in STYLES:
        if file.name not in allowed:
            assert not re.search(r"#[0-9a-fA-F]{3,8}\b", file.read_text(encoding="utf-8")), file


def test_vendored_files_are_as_published() -> None:
    sums = sorted((STATIC / "vendor").rglob("CHECKSUMS"))
    assert sums
    for listing in sums:
        for line in listing.read_text(encoding="utf-8").splitlines():
            digest, name = line.split()
            found = hashlib.sha256((listing.parent / name).read_bytes()).hexdigest()
            assert found == digest, name
        assert "LICENSE" in listing.read_text(encoding="utf-8")
