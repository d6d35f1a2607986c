"""The reader for a plain CSV file, with the names of its columns."""

import csv as csv_files
from collections.abc import Iterator, Mapping
from pathlib import Path

from toolkit import tables
from toolkit.errors import DataError
from toolkit.readers import files
from toolkit.readers.answers import ANSWER_COLUMNS, NONE, Answers
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.files import Progress
from toolkit.readers.values import Unfit, to_score

__all__ = ["csv"]

REQUIRED = ("model", "item", "score")
LABELS = ("model", "task", "subtask", "seed", "prompt", "filter")


def csv(path: str | Path, columns: Mapping[str, str] | None = None) -> Answers:
    r"""Read a CSV file with one answer per line and a header.

    Parameters
    ----------
    path : str or Path
        A file in UTF-8, separated by commas.
    columns : mapping of str to str, optional
        ``{ours: theirs}`` for columns that have other names in the file, for example
        ``{"item": "question_id", "score": "correct"}``.

    Returns
    -------
    Answers
        `model`, `item` and `score` are needed; the other columns of the answers are read when
        they are there. Further columns are ignored. Reported values are empty.

    Raises
    ------
    DataError
        If a column is missing, a line has too few or too many fields, a score is text other
        than a number, ``true`` or ``false``, or lies outside 0 to 1, a label is empty, or two
        lines answer the same question. The message names the lines.

    Notes
    -----
    An empty score, or NaN, is an answer that was not scored: it is in `dropped`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "mine.csv")
    ...     _ = path.write_text("llm,question,correct\na,q1,1\na,q2,False\n")
    ...     answers = csv(path, {"model": "llm", "item": "question", "score": "correct"})
    >>> answers.table[["model", "item", "score"]].values.tolist()
    [['a', 'q1', 1.0], ['a', 'q2', 0.0]]
    """
    root = files.existing(path)
    if root.is_dir():
        raise DataError(f"{root}: a folder; give one CSV file.")
    names = {ours: ours for ours in ANSWER_COLUMNS} | dict(columns or {})
    unknown = [ours for ours in names if ours not in ANSWER_COLUMNS]
    if unknown:
        raise DataError(
            f"csv(columns={dict(columns or {})}): {unknown[0]!r} is no column of answers. "
            f"Allowed: {', '.join(ANSWER_COLUMNS)}."
        )
    collector = Collector()
    collector.open(root, "line")
    with files.progress([root]) as bar:
        for number, line in _lines(root, names, set(columns or {}), bar):
            _read(line, number, collector)
    answers = collector.answers(root)
    unfit = answers.dropped["reason"].str.startswith("values from")
    if unfit.any():
        first = answers.dropped[unfit].iloc[0]
        raise DataError(
            f"Column {names['score']!r} holds {first['reason']} ({first['where']}). Divide "
            f"percent by 100, in every row alike."
        )
    if len(answers.table):
        tables.check(answers.table, ANSWER_COLUMNS)
    return answers


def _lines(
    path: Path, names: Mapping[str, str], asked: set[str], bar: Progress
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line numbers and fields under our names."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv_files.reader(_counted(text, bar), strict=True)
        try:
            header = next(reader, None)
            if not header:
                raise DataError(f"{path.name}: empty. The first line names the columns.")
            places = _places(path, header, names, asked)
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise DataError(
                        f"{path.name}, line {reader.line_num}: {len(row)} fields, but the header "
                        f"names {len(header)}. Was the file cut off, or is a comma unquoted?"
                    )
                yield reader.line_num, {ours: row[at] for ours, at in places.items()}
        except csv_files.Error as error:
            raise DataError(
                f"{path.name}, line {reader.line_num}: not valid CSV ({error}). Was the file cut "
                f"off inside a quoted field?"
            ) from error
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path.name}: not UTF-8 text after line {reader.line_num} ({error.reason}). "
                f"Save it as CSV in UTF-8."
            ) from error


def _counted(text: Iterator[str], bar: Progress) -> Iterator[str]:
    for line in text:
        bar.update(len(line))
        yield line


def _places(
    path: Path, header: list[str], names: Mapping[str, str], asked: set[str]
) -> dict[str, int]:
    has = ", ".join(map(repr, header))
    doubled = {name for name in header if header.count(name) > 1} & set(names.values())
    if doubled:
        raise DataError(f"{path.name}: two columns {sorted(doubled)[0]!r}. Rename one.")
    needed = asked.union(REQUIRED)
    missing = [ours for ours in names if ours in needed and names[ours] not in header]
    if missing:
        raise DataError(
            f"{path.name}: no column {names[missing[0]]!r}. The file has {has}. Name it, for "
            f"example columns={{{missing[0]!r}: 'their name'}}."
        )
    return {ours: header.index(theirs) for ours, theirs in names.items() if theirs in header}


def _read(line: dict[str, str], number: int, collector: Collector) -> None:
    where = collector.where(number)
    empty = [name for name, text in line.items() if not text.strip() and name != "score"]
    if empty:
        raise DataError(f"{where}: column for {empty[0]!r} is empty. Fill it in or drop the line.")
    try:
        score = to_score(line["score"])
    except Unfit as unfit:
        raise DataError(
            f"{where}: the score {line['score']!r} is {unfit}. Write a number from 0 to 1, true, "
            f"false, or nothing where the answer was not scored."
        ) from unfit
    given = {name: line[name] for name in LABELS if name in line}
    labels = Labels(**{"task": NONE, **given})
    collector.add(
        labels,
        line.get("metric", "score"),
        line["item"],
        score,
        number,
        epoch=_epoch(line.get("epoch", "1"), where),
        cluster=line.get("cluster"),
    )


def _epoch(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise DataError(f"{where}: the epoch {text!r} is no whole number.") from error
