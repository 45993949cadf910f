"""The documents hold what they promise: links, commands, settings; and nothing of one machine."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands

from tests.servers import ROOT

# A link or an image with its target; targets may have a title after them.
LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
CODE_BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*$", re.MULTILINE)
EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)

MANAGE = re.compile(r"manage\.py +([a-z_]+)\b")
MAKE = re.compile(r"\bmake ((?:[A-Z]+=\S+ )*)([a-z]+)\b")
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
SETTING = re.compile(r"""(?:env(?:\.\w+)?,|environ\.get\(|environ,)\s*["']([A-Z][A-Z0-9_]+)["']""")
NAMED_SETTING = re.compile(r"^\| (`[A-Z][A-Z0-9_`, ]+`) \|", re.MULTILINE)

# Read from the environment in other words than SETTING's: require() and the helpers.
MORE_SETTINGS = {"DATABASE_URL", "REDIS_URL"}
# Named in running text, because nobody sets them.
IN_TEXT = {"KUBESCHED_MODE", "KUBESCHED_DEMO_RUN"}

IMAGES = ROOT / "docs" / "images"
PICTURES = ("heatmap.png", "waiting.png", "one-pods-way.svg")
# A path in code, from the repository's root. Capitals stand for a name: `pages/NAME.html`.
PATH = re.compile(
    r"\b(?:scheduler_core|dashboard|kubesched_site|templates|static|tests|scripts|examples|docs)"
    r"/[\w./-]*[\w/]"
)

# Written so that this file does not hold what it looks for.
INDEX_HOSTS = re.compile(
    r"py[p]i\.org|python[h]osted\.org|npm[j]s\.(?:org|com)|https?://[^\s\"'<>]*/simpl[e]\b"
)
MACHINE_PATHS = re.compile(r"(?<![\w.$}~-])/(?:hom[e]|User[s]|roo[t]|wor[k])/[\w.-]+")
# Facts of other systems, recorded byte by byte.
RECORDED = ("tests/data/", "static/vendor/")


@cache
def tracked() -> tuple[Path, ...]:
    """Every file that git knows, or would know if it were added."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    return tuple(ROOT / name for name in listed.stdout.split("\0") if name and exists(name))


def exists(name: str) -> bool:
    """Listed, but deleted in the work tree: not there."""
    return (ROOT / name).is_file()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def documents() -> tuple[Path, ...]:
    return tuple(
        path
        for path in tracked()
        if path.suffix == ".md" and not name_of(path).startswith(RECORDED)
    )


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def anchors(path: Path) -> frozenset[str]:
    """The anchors that a heading gets on the usual sites."""
    headings = HEADING.findall(CODE_BLOCK.sub("", text_of(path)))
    plain = (re.sub(r"[`*]", "", heading).lower() for heading in headings)
    return frozenset(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain)


def links(path: Path) -> list[str]:
    found = LINK.findall(CODE.sub("", text_of(path)))
    return [target for target in found if not EXTERNAL.match(target)]


def broken(path: Path) -> list[str]:
    faults = []
    for link in links(path):
        target, _, anchor = link.partition("#")
        file = (path.parent / target).resolve() if target else path
        if file.parent == IMAGES and file.name in PICTURES:
            continue  # a test of its own tells of these
        if not file.exists():
            faults.append(f"{link}: there is no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            faults.append(f"{link}: no heading makes this anchor")
    return faults


def id_of(path: Path) -> str:
    return name_of(path)


@pytest.mark.parametrize("document", documents(), ids=id_of)
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    assert broken(document) == []


@pytest.mark.parametrize("image", PICTURES)
def test_the_pictures_are_there_and_are_shown(image: str) -> None:
    path = IMAGES / image
    assert path.is_file(), f"docs/images/{image} is missing"
    start = path.read_bytes()[:64]
    assert start.startswith(b"\x89PNG\r\n\x1a\n" if image.endswith(".png") else b"<svg ")
    assert any(path == (doc.parent / link).resolve() for doc in documents() for link in links(doc))


@pytest.mark.parametrize("document", documents(), ids=id_of)
def test_every_command_that_is_named_exists(document: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    # Commands are in code only: "make a module" in running text is no command.
    code = " \n".join(CODE.findall(text_of(document)))
    missing = [f"manage.py {name}" for name in MANAGE.findall(code) if name not in get_commands()]
    missing += [f"make {name}" for _, name in MAKE.findall(code) if name not in targets]
    assert missing == []


@pytest.mark.parametrize("document", documents(), ids=id_of)
def test_every_path_that_is_named_exists(document: Path) -> None:
    if document.name == "CHANGELOG.md":
        return  # tells of what was
    spans = " ".join(CODE.findall(CODE_BLOCK.sub("", text_of(document))))
    named = [path for path in PATH.findall(spans) if "NAME" not in path and "*" not in path]
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_first_screen_of_the_readme_has_both_commands() -> None:
    first_screen = text_of(ROOT / "README.md").splitlines()[:20]
    for command in ("make demo", "make test"):
        assert any(line.startswith(command) for line in first_screen), command


def test_operations_names_every_environment_variable_and_no_other() -> None:
    settings = text_of(ROOT / "kubesched_site" / "settings.py")
    read = set(SETTING.findall(settings)) | MORE_SETTINGS
    operations = text_of(ROOT / "docs" / "operations.md")
    rows = " ".join(NAMED_SETTING.findall(operations))
    named = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", rows))
    assert read - IN_TEXT == named
    assert all(f"`{name}`" in operations for name in IN_TEXT)


def test_nothing_names_a_package_index_or_a_path_of_one_machine() -> None:
    found = []
    for path in tracked():
        name = name_of(path)
        if name.startswith(RECORDED):
            continue
        try:
            text = text_of(path)
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for pattern in (INDEX_HOSTS, MACHINE_PATHS):
                if match := pattern.search(line):
                    found.append(f"{name}:{number}: {match.group()}")
    assert found == []


@pytest.mark.parametrize(
    ("line", "is_found"),
    [
        pytest.param("https://py" + "pi.org/project/x", True, id="index"),
        pytest.param("--index-url http://mirror.example/simp" + "le", True, id="mirror"),
        pytest.param("cd /ho" + "me/ann/kubesched", True, id="home"),
        pytest.param('folder = "/wo' + 'rk/main"', True, id="work"),
        pytest.param("http://example.org/home/ann", False, id="web page"),
        pytest.param("/srv/kubesched", False, id="a place that anyone may have"),
        pytest.param("/simple", False, id="a word"),
    ],
)
def test_the_search_finds_what_it_shall(line: str, is_found: bool) -> None:
    assert bool(INDEX_HOSTS.search(line) or MACHINE_PATHS.search(line)) is is_found
