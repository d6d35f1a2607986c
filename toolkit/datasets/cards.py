"""What a dataset is, in words: rows, columns, units, source, licence, what it is good for."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Card", "Kind"]

Kind = Literal["bundled", "simulated", "registered", "local"]

KINDS: Mapping[Kind, str] = {
    "bundled": "part of the toolkit; works with no network",
    "simulated": "made by the toolkit from a known truth",
    "registered": "other people's data, downloaded on request and checked by sha256",
    "local": "made from other people's data; read from the folder TOOLKIT_DATA_DIR only",
}


@dataclass(frozen=True, slots=True)
class Card:
    """What to know about a dataset before using it.

    Attributes
    ----------
    name : str
        What `load` is called with.
    kind : {"bundled", "simulated", "registered", "local"}
        Where the table comes from.
    what : str
        One sentence: what a row is.
    good_for : str
        Questions the table can help to answer.
    rows, width : int
        Number of rows and columns of the loaded table.
    columns : mapping of str to str
        Column name to meaning and unit, for every column of a narrow table and for the main
        columns of a wide one.
    source : str
        Where the numbers come from.
    licence : str
        Licence of the source, or "none stated".
    notes : sequence of str
        Traps, and what was changed on the way from the source.
    truth : mapping of str to float
        Parameters that a simulated table was made from; empty otherwise.

    Examples
    --------
    >>> from toolkit import datasets
    >>> datasets.card("public_models").kind
    'bundled'
    """

    name: str
    kind: Kind
    what: str
    good_for: str
    rows: int
    width: int
    columns: Mapping[str, str]
    source: str
    licence: str
    notes: Sequence[str] = ()
    truth: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        title = f"{self.name}: {self.what}"
        blocks = [
            [title, "=" * len(title), *_aligned(self._facts())],
            ["columns", *(f"  {line}" for line in _aligned(self.columns.items()))],
            [f"- {note}" for note in self._notes()],
        ]
        return "\n\n".join("\n".join(lines) for lines in blocks if lines)

    def _repr_html_(self) -> str:
        title = f"<p><strong>{html.escape(self.name)}</strong>: {html.escape(self.what)}</p>"
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self._notes())
        return (
            f"{title}{_html_table(self._facts())}{_html_table(self.columns.items())}"
            f"{f'<ul>{notes}</ul>' if notes else ''}"
        )

    def _facts(self) -> list[tuple[str, str]]:
        facts = [
            ("kind", f"{self.kind}: {KINDS[self.kind]}"),
            ("rows x columns", f"{self.rows} x {self.width}"),
            ("good for", self.good_for),
            ("source", self.source),
            ("licence", self.licence),
        ]
        if self.truth:
            truth = ", ".join(f"{name} = {value:g}" for name, value in self.truth.items())
            facts.append(("truth", truth))
        return facts

    def _notes(self) -> list[str]:
        rest = self.width - len(self.columns)
        named = [f"{rest} more columns, under the names of the source."] if rest > 0 else []
        return [*self.notes, *named]


def _aligned(pairs: Iterable[tuple[str, str]]) -> list[str]:
    pairs = list(pairs)
    width = max((len(label) for label, _ in pairs), default=0)
    return [f"{label:<{width}}  {text}" for label, text in pairs]


def _html_table(pairs: Iterable[tuple[str, str]]) -> str:
    left = "style='text-align:left'"
    rows = (
        f"<tr><th {left}>{html.escape(label)}</th><td {left}>{html.escape(text)}</td></tr>"
        for label, text in pairs
    )
    return f"<table>{''.join(rows)}</table>"
