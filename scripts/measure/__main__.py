"""Measurements of the pages in a real browser: ``python -m scripts.measure NAME``, prints JSON.

docs/performance.md says what each is for and what it found.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser

from scripts.measure import crowd, heatmap, lists, picture, soak, start

MEASUREMENTS = {
    "crowd": crowd,
    "heatmap": heatmap,
    "lists": lists,
    "picture": picture,
    "soak": soak,
    "start": start,
}


def main() -> None:
    parser = ArgumentParser(prog="python -m scripts.measure", description=__doc__)
    names = parser.add_subparsers(dest="name", required=True)
    for name, module in MEASUREMENTS.items():
        module.add_arguments(names.add_parser(name, help=(module.__doc__ or "").splitlines()[0]))
    options = parser.parse_args()
    print(json.dumps(MEASUREMENTS[options.name].run(options), indent=2))


if __name__ == "__main__":
    main()
