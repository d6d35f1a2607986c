"""Command line of the pocket suite."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from toolkit.datasets.pocket_suite import (
    corpus,
    demo,
    learning_rates,
    pack,
    plan,
    report,
    run_suite,
    tasks,
)

BUNDLED = Path(__file__).parent.parent / "bundled"


def main() -> None:
    """Parse the command line and do what it says."""
    arguments = _parser().parse_args()
    if arguments.command == "corpus":
        wheels = arguments.corpus.parent / "wheels"
        corpus.download(wheels)
        corpus.check(corpus.build(wheels, arguments.corpus))
        return
    if arguments.command == "report":
        print(report.describe(BUNDLED))
        return
    corpus.verify(arguments.corpus)
    if arguments.command == "sweep":
        learning_rates.sweep(arguments.corpus)
    elif arguments.command == "run":
        done = pack.packed_runs(BUNDLED)
        run_suite.run_suite(plan.make(), arguments.corpus, arguments.out, arguments.workers, done)
    elif arguments.command == "pack":
        rows = pack.pack(arguments.out, tasks.load(arguments.corpus), BUNDLED)
        print("\n".join(f"{name}: {count} rows" for name, count in rows.items()))
    else:
        table = demo.compare(arguments.corpus, BUNDLED / pack.RUNS)
        print(table.to_string(float_format="{:.4f}".format))
        if not table["within"].all():
            sys.exit("some losses differ from the bundled ones by more than the seed noise")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m toolkit.datasets.pocket_suite")
    commands = parser.add_subparsers(dest="command", required=True)
    explained = {
        "corpus": "download the pinned packages and build the text",
        "sweep": "train the runs that chose the learning rates",
        "run": "train and evaluate every run that is neither bundled nor in --out",
        "pack": "add the finished runs in --out to the bundled tables",
        "report": "print what the bundled tables hold and measure",
        "demo": "train a few runs again and compare them with the bundled table",
    }
    for name, help_text in explained.items():
        command = commands.add_parser(name, help=help_text)
        if name != "report":
            command.add_argument("--corpus", type=Path, default=Path("pocket-suite/corpus"))
        if name in ("run", "pack"):
            command.add_argument("--out", type=Path, default=Path("pocket-suite/results"))
        if name == "run":
            command.add_argument("--workers", type=int, default=2)
    return parser


if __name__ == "__main__":
    main()
