"""Build the corpus: from pinned wheels to arrays of tokens, the same on every machine.

The wheels named in ``text_sources.csv`` are downloaded, their Python files read (tests, tables of
data and files that do not parse are left out), split into code and prose, stripped of duplicate
blocks and encoded. The split into training, validation, tuning and item sources is by package, so
no validation token comes from a package that was trained on. No text is kept in the project: the
committed ``corpus_manifest.json`` has the hash of every array, and a build that differs is an
error.
"""

from __future__ import annotations

import csv
import hashlib
import json
import random
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from toolkit.datasets.pocket_suite import text, tokenizer

HERE = Path(__file__).parent
SOURCES = HERE / "text_sources.csv"
MANIFEST = HERE / "corpus_manifest.json"
KINDS = ("code", "prose")
SHUFFLE_SEED = 2026
# Only the Python files of a wheel are read, so every machine reads the same wheels.
WHEELS = ["--python-version", "3.11", "--implementation", "cp"]
WHEELS += [f"--abi={tag}" for tag in ("cp311", "abi3", "none")]
WHEELS += [
    f"--platform=manylinux{tag}_x86_64" for tag in ("_2_28", "_2_27", "_2_24", "_2_17", "2014")
]

Tokens = npt.NDArray[np.uint16]


class CorpusError(Exception):
    """The corpus cannot be built, or is not the one the bundled runs were trained on."""


@dataclass(frozen=True)
class Source:
    """One pinned package and the split it belongs to."""

    split: str
    package: str
    version: str


def sources() -> list[Source]:
    """Read the pinned packages, training packages first."""
    with SOURCES.open(newline="") as file:
        return [Source(**row) for row in csv.DictReader(file)]


def download(folder: Path) -> None:
    """Fetch the pinned wheels that are not in ``folder`` yet."""
    folder.mkdir(parents=True, exist_ok=True)
    missing = [source for source in sources() if not _wheels(folder, source)]
    if missing:
        pins = [f"{source.package}=={source.version}" for source in missing]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        pip += ["--only-binary", ":all:", *WHEELS, "--dest", str(folder)]
        subprocess.run([*pip, *pins], check=True)


def read_package(folder: Path, source: Source) -> tuple[list[text.Document], list[text.Document]]:
    """Read one wheel as documents of code and documents of prose, in order of path."""
    wheels = _wheels(folder, source)
    if len(wheels) != 1:
        raise CorpusError(
            f"expected one wheel of {source.package} {source.version} in {folder}, "
            f"found {len(wheels)}; run `download` again or remove the others"
        )
    code, prose = [], []
    for path, module in _modules(wheels[0]):
        try:
            blocks, paragraphs = text.split_module(module)
        except (SyntaxError, ValueError, RecursionError):
            continue  # templates and files of other Python versions
        if blocks:
            code.append(text.Document(source.package, path, tuple(blocks)))
        if paragraphs:
            prose.append(text.Document(source.package, path, tuple(paragraphs)))
    return code, prose


def build(wheels: Path, out: Path) -> dict[str, object]:
    """Build every array and the item documents under ``out``.

    Parameters
    ----------
    wheels : Path
        Folder with the wheels.
    out : Path
        Folder for ``<split>_<kind>.npy`` (unsigned 16-bit tokens), ``train_<kind>_repeated.npy``
        (the training text with its duplicate blocks) and ``items.json``.

    Returns
    -------
    dict
        The manifest: versions, sizes and hashes.
    """
    out.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        read = pool.map(partial(read_package, wheels), sources())
        everything = dict(zip(sources(), read, strict=True))
    clean: dict[str, list[text.Document]] = {}
    texts: dict[str, list[str]] = {}
    for index, kind in enumerate(KINDS):
        minimum = text.MINIMUM_DUPLICATE_LENGTH if kind == "code" else 0
        seen: set[bytes] = set()
        for split in dict.fromkeys(source.split for source in everything):
            raw = [
                document
                for source, documents in everything.items()
                if source.split == split
                for document in documents[index]
            ]
            kept = list(text.without_duplicates(raw, seen, minimum))
            clean[f"{split}_{kind}"] = kept
            texts[f"{split}_{kind}"] = _shuffled(kept)
            if split == "train":
                texts[f"train_{kind}_repeated"] = _shuffled(raw)
    encoder = tokenizer.load_or_train(texts["train_code"], texts["train_prose"])
    entries = {}
    for name, documents in texts.items():
        if not name.startswith("items"):
            entries[name] = _write_array(out / f"{name}.npy", encoder, documents)
    items = {
        kind: [
            [document.package, document.path, document.text] for document in clean[f"items_{kind}"]
        ]
        for kind in KINDS
    }
    payload = json.dumps(items).encode()
    (out / "items.json").write_bytes(payload)
    entries["items"] = {"sha256": hashlib.sha256(payload).hexdigest()}
    return {
        "python": ".".join(map(str, sys.version_info[:3])),
        "tokenizer": {"sha256": hashlib.sha256(tokenizer.FILE.read_bytes()).hexdigest()},
        "arrays": entries,
    }


def check(manifest: dict[str, object]) -> None:
    """Compare a build with the committed manifest.

    Raises
    ------
    CorpusError
        Some array is not the one the bundled runs were trained on.
    """
    expected = json.loads(MANIFEST.read_text())
    found = manifest["arrays"]
    assert isinstance(found, dict)
    wrong = [
        name
        for name, entry in expected["arrays"].items()
        if found.get(name, {}).get("sha256") != entry["sha256"]
    ]
    if wrong:
        raise CorpusError(
            f"these parts differ from the corpus of the bundled runs: {', '.join(wrong)}. "
            f"It was built with Python {expected['python']} (this is {manifest['python']}) from "
            f"the versions in {SOURCES.name}; rebuild with those"
        )


def verify(folder: Path) -> None:
    """Check that the arrays lying in ``folder`` are those of the committed manifest."""
    expected = json.loads(MANIFEST.read_text())["arrays"]
    found = {}
    for name in expected:
        path = folder / ("items.json" if name == "items" else f"{name}.npy")
        if not path.exists():
            raise CorpusError(f"{path} is missing: build the corpus first")
        content = path.read_bytes() if name == "items" else np.load(path).tobytes()
        found[name] = {"sha256": hashlib.sha256(content).hexdigest()}
    check({"arrays": found, "python": ".".join(map(str, sys.version_info[:3]))})


def load_tokens(folder: Path, name: str) -> Tokens:
    """Load one array of tokens, memory-mapped."""
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def _wheels(folder: Path, source: Source) -> list[Path]:
    stem = source.package.replace("-", "_")
    return sorted(folder.glob(f"{stem}-{source.version}-*.whl"))


def _modules(wheel: Path) -> Iterator[tuple[str, str]]:
    hashes: set[bytes] = set()
    with zipfile.ZipFile(wheel) as archive:
        for path in sorted(archive.namelist()):
            if not path.endswith(".py") or text.is_test_path(path):
                continue
            content = archive.read(path)
            digest = hashlib.sha256(content).digest()
            module = content.decode("utf-8", "replace").replace("\r\n", "\n").expandtabs(4)
            if digest not in hashes and not text.is_data_table(module):
                yield path, module
            hashes.add(digest)


def _shuffled(documents: list[text.Document]) -> list[str]:
    texts = [document.text for document in documents]
    random.Random(SHUFFLE_SEED).shuffle(texts)
    return texts


def _write_array(path: Path, encoder: Tokenizer, texts: list[str]) -> dict[str, object]:
    tokens, size = [], 0
    for start in range(0, len(texts), 500):
        batch = texts[start : start + 500]
        encodings = encoder.encode_batch(batch, add_special_tokens=False)
        tokens += [np.asarray([*code.ids, tokenizer.END], dtype=np.uint16) for code in encodings]
        size += sum(len(document.encode()) for document in batch)
    array = np.concatenate(tokens)
    np.save(path, array)
    return {
        "documents": len(texts),
        "bytes": size,
        "tokens": int(array.size),
        "sha256": hashlib.sha256(array.tobytes()).hexdigest(),
    }
