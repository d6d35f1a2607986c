"""Turn Python source files into two kinds of text: code and prose.

Code is a module without its docstrings and comment lines; prose is those docstrings and comment
lines, one unwrapped paragraph per block. Everything here works on strings and needs nothing
beyond the standard library.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MINIMUM_WORDS = 6
MINIMUM_LETTERS = 0.80
MAXIMUM_DIGITS = 0.20
MAXIMUM_NON_ASCII = 0.01
# Shorter code blocks ("import numpy as np") are idioms of the language, not copies.
MINIMUM_DUPLICATE_LENGTH = 80

_TEST_PATH = re.compile(r"(^|/)(tests?|testing|_test)/|(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")
_WORD = re.compile(r"[A-Za-z]{2,}")


@dataclass(frozen=True)
class Document:
    """One module's text of one kind, as blocks.

    Attributes
    ----------
    package : str
        The package it came from.
    path : str
        Path inside the package.
    blocks : tuple of str
        Blank-line-separated chunks of code, or paragraphs of prose.
    """

    package: str
    path: str
    blocks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The blocks with one blank line between them and a final newline."""
        return "\n\n".join(self.blocks) + "\n"


def is_test_path(path: str) -> bool:
    """Whether a file holds tests.

    Examples
    --------
    >>> is_test_path("numpy/lib/tests/test_io.py"), is_test_path("numpy/lib/npyio.py")
    (True, False)
    """
    return _TEST_PATH.search(path) is not None


def is_data_table(source: str) -> bool:
    """Whether a module is mostly numbers, or mostly not English, rather than a program."""
    length = max(len(source), 1)
    digits = sum(character.isdigit() for character in source)
    non_ascii = len(source) - len(source.encode("ascii", "ignore"))
    return digits > MAXIMUM_DIGITS * length or non_ascii > MAXIMUM_NON_ASCII * length


def split_module(source: str) -> tuple[list[str], list[str]]:
    r"""Split a module into blocks of code and paragraphs of prose.

    Parameters
    ----------
    source : str
        The module's source.

    Returns
    -------
    code, prose : list of str
        Comments that share a line with code stay in the code.

    Raises
    ------
    SyntaxError
        The source does not parse.

    Examples
    --------
    >>> code, prose = split_module("# One comment line that is long enough.\nx = 1\n")
    >>> code, prose
    (['x = 1'], ['One comment line that is long enough.'])
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escape sequences in other people's strings
        tree = ast.parse(source)
    lines = source.splitlines()
    docstrings, inside_strings = _string_lines(tree)
    dropped = {line for _, span in docstrings for line in span}
    comments: list[list[str]] = [[]]
    for number, line in enumerate(lines, start=1):
        if number in inside_strings or not line.lstrip().startswith("#"):
            comments.append([])
        else:
            comments[-1].append(line.lstrip().lstrip("#!: ").rstrip())
            dropped.add(number)
    kept = (line.rstrip() for number, line in enumerate(lines, start=1) if number not in dropped)
    texts = [
        *(text for text, _ in docstrings),
        *("\n".join(comment) for comment in comments if comment),
    ]
    prose = [paragraph for text in texts for paragraph in prose_paragraphs(text)]
    return list(_blocks("\n".join(kept))), prose


def prose_paragraphs(text: str) -> Iterator[str]:
    """Yield the unwrapped paragraphs that read as sentences.

    A paragraph needs at least six words, four characters in five letters or spaces, and no
    interpreter prompt.
    """
    for paragraph in _blocks(text):
        joined = " ".join(paragraph.split())
        if ">>>" in joined or len(_WORD.findall(joined)) < MINIMUM_WORDS:
            continue
        letters = sum(character.isalpha() or character == " " for character in joined)
        if letters >= MINIMUM_LETTERS * len(joined):
            yield joined


def without_duplicates(
    documents: Iterable[Document], seen: set[bytes], minimum_length: int = 0
) -> Iterator[Document]:
    """Drop every block already seen, ignoring white space and case.

    Parameters
    ----------
    documents : iterable of Document
    seen : set of bytes
        Hashes of the blocks seen so far; updated in place.
    minimum_length : int
        Blocks with fewer characters are always kept.

    Yields
    ------
    Document
        Documents left with no block are dropped.
    """
    for document in documents:
        kept = []
        for block in document.blocks:
            normal = " ".join(block.lower().split())
            digest = hashlib.blake2b(normal.encode(), digest_size=12).digest()
            if len(normal) < minimum_length or digest not in seen:
                kept.append(block)
            seen.add(digest)
        if kept:
            yield Document(document.package, document.path, tuple(kept))


def _blocks(text: str) -> Iterator[str]:
    for block in re.split(r"\n\s*\n", text):
        if block.strip():
            yield block.strip("\n")


def _string_lines(tree: ast.Module) -> tuple[list[tuple[str, range]], set[int]]:
    """Docstrings with the lines they span, and all lines inside strings of several lines."""
    docstrings: list[tuple[str, range]] = []
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                value = first.value.value
                if isinstance(value, str):
                    span = range(first.lineno, (first.end_lineno or first.lineno) + 1)
                    docstrings.append((inspect.cleandoc(value), span))
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            last = node.end_lineno or node.lineno
            if last > node.lineno:
                inside.update(range(node.lineno, last + 1))
    return docstrings, inside
