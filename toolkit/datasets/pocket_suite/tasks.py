"""Six multiple-choice tasks of 600 items each, made from held-out packages and from rules.

Every item has four options and one right answer. Right answers are spread evenly over the four
places, and the wrong options of an item are right answers elsewhere, so that neither the place
nor the wording of an option gives it away. ``cloze`` is asked with three prompts. ``arithmetic``
is the control: models of this size stay at chance.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np

ITEMS_PER_TASK = 600
OPTIONS = 4
# Characters of context before the question; about the 64 tokens that a context may have.
CONTEXT_CHARACTERS = 144
SHORT_CONTEXT_CHARACTERS = 50
SUFFIX_CHARACTERS = 24
ITEMS_PER_DOCUMENT = 3
RAREST_WORD = 100
CLOSEST_NAMES = 6
SEED = 7

OPENERS = {")": "(", "]": "[", "}": "{", '"': '"'}
INDENTS = (4, 8, 12, 16)

_IDENTIFIER = re.compile(r"(?<![A-Za-z0-9_\"'])[a-z_][a-z0-9_]{3,15}(?![A-Za-z0-9_\"'])")
_WORD = re.compile(r"(?<= )[a-z]{3,11}(?=[ ,.;:])")
_LINE = re.compile(r"\n( *)(?=\S)")
_STRING = re.compile(r"(?<=[ (=\[,])\"[^\"'\n\\{}()\[\]]{3,30}(?=\"[,)\]}:\n])")
_DOCSTRING = 'def main():\n    """'
_BLANK = re.compile(r"\s")


@dataclass(frozen=True)
class Item:
    """One multiple-choice question.

    Attributes
    ----------
    task, item, prompt : str
        ``item`` is the same for all prompts of one question.
    cluster : str
        The package it was made from, or ``rules``.
    context : str
        What the model reads.
    options : tuple of str
        Four continuations.
    answer : int
        Place of the right one.
    baselines : dict
        What rules that need no model choose, as places.
    """

    task: str
    item: str
    prompt: str
    cluster: str
    context: str
    options: tuple[str, ...]
    answer: int
    baselines: dict[str, int]


@dataclass(frozen=True)
class Candidate:
    """A right answer in its context, before options are chosen.

    Strata are equally frequent, or trade their right answers as wrong options. ``guess`` is what
    a simple rule answers; where options are traded the rule takes the one of most ``weight``.
    ``suffix`` follows all options.
    """

    cluster: str
    context: str
    right: str
    stratum: str
    wrong: tuple[str, ...] = ()
    guess: str = ""
    weight: float = 0.0
    suffix: str = ""


Documents = Sequence[tuple[str, str, str]]


def build(code: Documents, prose: Documents, count: int = ITEMS_PER_TASK) -> list[Item]:
    """Make all items.

    Parameters
    ----------
    code, prose : sequence of (package, path, text)
    count : int
        Items per task; a multiple of 12.

    Returns
    -------
    list of Item
        ``count`` per task, and ``count`` per prompt for ``cloze``.

    Raises
    ------
    ValueError
        The text is too short for ``count`` items of some task.
    """
    rng = np.random.default_rng(SEED)
    brackets = _balanced("bracket", _brackets(code, rng), count, rng)
    indents = _balanced("indent", _indents(code, rng), count, rng)
    identifiers = _balanced("identifier", _identifiers(code, rng), count, rng)
    copies = _balanced("copy", _copies(code, rng), count, rng)
    sums = _traded("arithmetic", _sums(rng), count, rng)
    cloze = _traded("cloze", _clozes(prose, rng), count, rng)
    return [*brackets, *indents, *identifiers, *copies, *sums, *_with_prompts(cloze)]


def load(corpus: Path) -> list[Item]:
    """Make the items from the held-out documents of a built corpus."""
    documents = json.loads((corpus / "items.json").read_text())
    return build(documents["code"], documents["prose"])


def baseline_scores(items: Iterable[Item]) -> dict[str, dict[str, float]]:
    """Score of each rule that needs no model, per task."""
    hits: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        for name, place in item.baselines.items():
            hits[item.task][name].append(place == item.answer)
    return {
        task: {name: float(np.mean(values)) for name, values in rules.items()}
        for task, rules in hits.items()
    }


def _brackets(code: Documents, rng: np.random.Generator) -> Iterator[Candidate]:
    """Ask which delimiter closes next: the guess closes the last opener in sight."""
    for package, _, text in _shuffled(code, rng):
        ends = list(_closings(text))
        for closer, wrong in _rotations(list(OPENERS)):
            places = [place for place, mark in ends if mark == closer]
            if places:
                context = _context(text, int(rng.choice(places)))
                last = {closing: context.rfind(opening) for closing, opening in OPENERS.items()}
                guess = max(last, key=last.__getitem__)
                yield Candidate(package, context, closer, closer, wrong, guess)


def _rotations(options: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each option as the right one, with the others."""
    for option in options:
        yield option, tuple(other for other in options if other != option)


def _closings(text: str) -> Iterator[tuple[int, str]]:
    """Places where a bracket or a short plain string closes, with its opener near."""
    strings = {match.end() for match in _STRING.finditer(text)}
    stack: list[int] = []
    for place, mark in enumerate(text):
        if mark in "([{":
            stack.append(place)
        elif mark in ")]}" and stack:
            opened = stack.pop()
            near = place - opened < CONTEXT_CHARACTERS // 2
            if near and text[opened] == OPENERS[mark] and text[place - 1].isalnum():
                yield place, mark
        elif place in strings and text[place - 1].isalnum():
            yield place, mark


def _indents(code: Documents, rng: np.random.Generator) -> Iterator[Candidate]:
    """Ask for the indentation of the next line: the guess is that of the line before.

    A third each goes deeper, stays and comes back, so the guess is right one time in three.
    """
    options = dict(_rotations(["\n" + " " * width for width in INDENTS]))
    for package, _, text in _shuffled(code, rng):
        lines = list(_LINE.finditer(text))
        found: dict[str, list[Candidate]] = defaultdict(list)
        for before, here in pairwise(lines):
            now, previous = len(here[1]), len(before[1])
            if now in INDENTS and previous % 4 == 0 and text[here.start() - 1] != "\n":
                change = int(np.sign(now - previous))
                stratum, right, guess = f"{now} {change}", "\n" + here[1], "\n" + before[1]
                context, wrong = _context(text, here.start()), options[right]
                found[stratum].append(Candidate(package, context, right, stratum, wrong, guess))
        for candidates in found.values():
            yield candidates[rng.integers(len(candidates))]


def _identifiers(code: Documents, rng: np.random.Generator) -> Iterator[Candidate]:
    """Ask for the next name: wrong options are names used as often in the same file."""
    for package, _, text in _shuffled(code, rng):
        uses: dict[str, list[int]] = defaultdict(list)
        for match in _IDENTIFIER.finditer(text):
            uses[match[0]].append(match.start())
        repeated = {name: len(places) for name, places in uses.items() if len(places) >= 3}
        for name in rng.permutation(sorted(repeated))[:ITEMS_PER_DOCUMENT]:
            distance = {
                other: abs(np.log(count / repeated[name]))
                for other, count in repeated.items()
                if other[0] != name[0]
            }
            alike = sorted(distance, key=distance.__getitem__)[:CLOSEST_NAMES]
            place = int(rng.choice(uses[name][1:]))
            if place > CONTEXT_CHARACTERS and len(alike) >= OPTIONS - 1:
                wrong = [str(other) for other in rng.permutation(alike)[: OPTIONS - 1]]
                space = " " if text[place - 1] == " " else ""
                options = tuple(space + option for option in wrong)
                context = _context(text, place - len(space))
                often = max([*wrong, str(name)], key=lambda other: (repeated[other], other))
                yield Candidate(package, context, space + str(name), "", options, space + often)


def _copies(code: Documents, rng: np.random.Generator) -> Iterator[Candidate]:
    """Ask for the next argument of a call that repeats four arguments in order.

    The guess is one of the arguments not repeated yet.
    """
    for number, (package, _, text) in enumerate(_shuffled(code, rng)):
        names = sorted({match[0] for match in _IDENTIFIER.finditer(text) if len(match[0]) < 11})
        if len(names) < OPTIONS + 2:
            continue
        outer, inner, *arguments = (str(n) for n in rng.permutation(names)[: OPTIONS + 2])
        place = number % OPTIONS
        guess = str(rng.choice(arguments[place:]))
        given = ", ".join(arguments[:place]) + ("," if place else "")
        space = " " if place else ""
        context = f"def {outer}({', '.join(arguments)}):\n    return {inner}({given}"
        right = space + arguments.pop(place)
        wrong = tuple(space + name for name in arguments)
        yield Candidate(package, context, right, str(place), wrong, space + guess)


def _sums(rng: np.random.Generator) -> Iterator[Candidate]:
    """Ask for sums of numbers of two digits, with four examples; the guess is the largest."""
    seen: Counter[int] = Counter()
    while True:
        pairs = rng.integers(10, 50, size=(OPTIONS + 1, 2))
        *shots, question = (f"{a}+{b}={a + b}\n" for a, b in pairs)
        context, right = question.strip().split("=")
        stratum = str(seen[int(right)])
        seen[int(right)] += 1
        context = f"{''.join(shots)}{context}="
        yield Candidate("rules", context, right, stratum, weight=float(right))


def _clozes(prose: Documents, rng: np.random.Generator) -> Iterator[Candidate]:
    """Ask for a word of a sentence: options trade places within like length and frequency."""
    counts = Counter(word for _, _, text in prose for word in _WORD.findall(text))
    seen: Counter[str] = Counter()
    for package, _, text in _shuffled(prose, rng):
        places = [
            match
            for match in _WORD.finditer(text)
            if match.start() > CONTEXT_CHARACTERS
            and "\n" not in text[match.start() - SHORT_CONTEXT_CHARACTERS : match.start()]
            and counts[match[0]] >= RAREST_WORD
        ]
        for index in rng.permutation(len(places))[:ITEMS_PER_DOCUMENT]:
            word, place = places[index][0], places[index].start() - 1
            # A ring has a word once, so the second time it goes to the next ring.
            stratum = f"{len(word) // 3} {int(np.log2(counts[word])) // 2} {seen[word]}"
            seen[word] += 1
            context, rest = _context(text, place), text[place + 1 + len(word) :]
            suffix = rest[:SUFFIX_CHARACTERS].split("\n")[0].rpartition(" ")[0]
            weight = counts[word]
            yield Candidate(package, context, " " + word, stratum, weight=weight, suffix=suffix)


def _with_prompts(items: list[Item]) -> Iterator[Item]:
    """Ask each cloze question plainly, with little context, and as a docstring."""
    for item in items:
        short = item.context[-SHORT_CONTEXT_CHARACTERS:].split(" ", 1)[-1]
        yield item
        yield replace(item, prompt="short", context=short)
        yield replace(item, prompt="docstring", context=_DOCSTRING + item.context.lstrip())


def _balanced(
    task: str, candidates: Iterable[Candidate], count: int, rng: np.random.Generator
) -> list[Item]:
    """Items that bring their own wrong options, as many of each stratum."""
    strata: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        strata[candidate.stratum].append(candidate)
    quota = count // len(strata)
    short = {stratum: len(kept) for stratum, kept in strata.items() if len(kept) < quota}
    if short:
        raise ValueError(f"{task} needs {quota} candidates in each stratum, found {short}")
    return _items(task, [kept for group in strata.values() for kept in group[:quota]], rng)


def _traded(
    task: str, candidates: Iterable[Candidate], count: int, rng: np.random.Generator
) -> list[Item]:
    """Items whose wrong options are the right answers of others in the stratum.

    The right answers of a stratum stand in a ring and each takes the next three, so each is
    offered wrongly three times for every time it is right. The guess is the answer of most weight.
    """
    strata: dict[str, dict[str, Candidate]] = defaultdict(dict)
    for candidate in candidates:
        strata[candidate.stratum].setdefault(candidate.right, candidate)
        if sum(map(len, strata.values())) >= 2 * count:
            break
    rings = sorted((list(ring.values()) for ring in strata.values()), key=len, reverse=True)
    chosen: list[Candidate] = []
    for ring in rings:
        size = min(len(ring), count - len(chosen))
        if 0 < count - len(chosen) - size < OPTIONS:
            size -= OPTIONS  # what is left must still be enough for a ring
        members = [ring[index] for index in rng.permutation(len(ring))[: max(size, 0)]]
        chosen += _ring(members) if len(members) >= OPTIONS else []
    if len(chosen) < count:
        raise ValueError(f"{task} needs {count} candidates, found {len(chosen)}")
    return _items(task, chosen, rng)


def _ring(members: list[Candidate]) -> Iterator[Candidate]:
    for index, member in enumerate(members):
        others = [members[(index + step) % len(members)] for step in range(1, OPTIONS)]
        heaviest = max([*others, member], key=lambda other: other.weight)
        wrong = tuple(other.right for other in others)
        yield replace(member, wrong=wrong, guess=heaviest.right)


def _items(task: str, candidates: list[Candidate], rng: np.random.Generator) -> list[Item]:
    """Put the right answers in the four places equally often."""
    places = rng.permutation(np.arange(len(candidates)) % OPTIONS)
    items = []
    for number, (candidate, place) in enumerate(zip(candidates, places, strict=True)):
        options = [str(option) for option in rng.permutation(candidate.wrong)]
        options.insert(int(place), candidate.right)
        lengths = [len(option) for option in options]
        texts = tuple(option + candidate.suffix for option in options)
        baselines = {
            "first": 0,
            "longest": int(np.argmax(lengths)),
            "guess": options.index(candidate.guess) if candidate.guess in options else -1,
        }
        item = f"{task}-{number:03d}"
        context, cluster = candidate.context, candidate.cluster
        items.append(Item(task, item, "plain", cluster, context, texts, int(place), baselines))
    return items


def _context(text: str, place: int) -> str:
    """Cut the text before a place, from the first whole word in reach."""
    start = place - CONTEXT_CHARACTERS
    if start <= 0:
        return text[:place]
    blank = _BLANK.search(text, start, place)
    return text[blank.start() if blank else start : place]


def _shuffled(documents: Documents, rng: np.random.Generator) -> Iterator[tuple[str, str, str]]:
    """Documents in random order, one of each package in turn while it lasts."""
    packages: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for index in rng.permutation(len(documents)):
        document = documents[index]
        packages[document[0]].append((document[0], document[1], document[2]))
    for row in zip_longest(*(packages[name] for name in sorted(packages))):
        yield from (document for document in row if document is not None)
