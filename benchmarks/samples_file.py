"""Read a generated samples file and print time and memory: ``python -m benchmarks.samples_file``.

Lines like those of lm-evaluation-harness, about 600 bytes each. Memory is the process's highest,
less what it held before it read.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import toolkit as tk


def write(path: Path, lines: int) -> None:
    """Write a samples file with one filter and one metric."""
    doc = {"question": "What follows from this? " * 8, "choices": ["red", "green", "blue"]}
    responses = [[["-1.25", "False"]], [["-2.5", "True"]], [["-0.75", "False"]]]
    rest = {
        "target": "1",
        "resps": responses,
        "filtered_resps": [pair[0] for pair in responses],
        "filter": "none",
        "metrics": ["acc"],
    }
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            line = {"doc_id": number, "doc": doc, **rest, "acc": float(number % 3 == 0)}
            file.write(json.dumps(line) + "\n")


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of reading a samples file.")
    parser.add_argument("--lines", type=int, default=1_000_000)
    lines = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        small, path = (Path(folder, f"samples_{name}.jsonl") for name in ("small", "task"))
        write(small, 10)
        tk.readers.lm_eval(small)  # imports are not what is measured
        write(path, lines)
        before, began = peak_megabytes(), time.process_time()
        answers = tk.readers.lm_eval(path)
        seconds = time.process_time() - began
        print(
            f"{lines:,} lines, {path.stat().st_size / 2**20:,.0f} MiB: {seconds:.1f} s of CPU, "
            f"{peak_megabytes() - before:,.0f} MiB more at the peak, of which the table "
            f"{answers.table.memory_usage(deep=True).sum() / 2**20:,.0f} MiB"
        )


if __name__ == "__main__":
    main()
