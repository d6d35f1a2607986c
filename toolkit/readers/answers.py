"""What every reader returns: the answers, what the tool reported, and what was left out."""

from dataclasses import dataclass

import pandas as pd

from toolkit.results import Summary, significant

__all__ = [
    "ANSWER_COLUMNS",
    "DROPPED_COLUMNS",
    "KEYS",
    "NONE",
    "REPORTED_COLUMNS",
    "RUN",
    "Answers",
]

NONE = "none"  # a label that the files do not give
RUN = ["model", "task", "subtask", "seed", "prompt"]
KEYS = [*RUN, "item", "epoch", "filter", "metric"]
ANSWER_COLUMNS = [
    *["model", "task", "subtask", "item", "cluster", "seed", "epoch", "prompt", "filter", "metric"],
    "score",
]
REPORTED_COLUMNS = [*RUN, "filter", "metric", "value", "stderr", "questions"]
DROPPED_COLUMNS = [*RUN, "item", "epoch", "filter", "metric", "reason", "answers", "where"]


@dataclass(frozen=True, slots=True)
class Answers:
    r"""Answers of models to questions, as an evaluation tool recorded them.

    Every reader gives the same columns. A label that the files do not give is ``"none"``.

    Attributes
    ----------
    table : DataFrame
        One row per answer and metric: `model`, `task`, `subtask` (part of the task), `item` (the
        tool's name of the question, unique within its subtask), `cluster` (questions that belong
        together, unique over all tasks; each question by itself unless the reader was told
        otherwise), `seed`, `epoch` (repeat of the question, from 1), `prompt`, `filter`, `metric`
        and `score`, a fraction from 0 to 1 where higher is better. No two rows agree in all
        labels. Filters and metrics stand below each other: choose one of each before averaging.
    reported : DataFrame
        What the tool itself wrote for each task, filter and metric: `value` in the metric's own
        unit (a perplexity stays one), `stderr` and the number of `questions`, both NaN where the
        files do not say. Averages over tasks are not repeated here.
    dropped : DataFrame
        What the files hold and `table` or `reported` does not, with the `reason`, how many
        `answers`, and `where` the first of them stands. An unscored answer (NaN, null, an error)
        has a row of its own: it is neither right nor wrong. Averages over tasks have a row each.

    Examples
    --------
    >>> import tempfile, pathlib, toolkit as tk
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "answers.csv")
    ...     _ = path.write_text("model,item,score\na,q1,1\na,q2,0\na,q3,\n")
    ...     answers = tk.readers.csv(path)
    >>> float(answers.table["score"].mean())
    0.5
    >>> answers.dropped[["item", "reason", "where"]].values.tolist()
    [['q3', 'unscored', 'answers.csv, line 4']]
    """

    table: pd.DataFrame
    reported: pd.DataFrame
    dropped: pd.DataFrame

    def to_frame(self) -> pd.DataFrame:
        """Return the answers, one row each."""
        return self.table

    def agreement(self) -> pd.DataFrame:
        """Put each reported value beside the mean of the answers that were read.

        Returns
        -------
        DataFrame
            `reported` with two columns more: `mean`, over items after the mean over the epochs
            of each item (and over seeds, where the value is), and `items`, how many have a score.
            NaN and 0 where the answers of that task, filter and metric are not in `table`.
        """
        labels = [*RUN, "filter", "metric"]
        answers = self.table.astype(dict.fromkeys(labels, "str"))
        over_seeds = answers[answers["seed"] != NONE].assign(seed=NONE)
        items = pd.concat([answers, over_seeds]).groupby([*labels, "item"])["score"].mean()
        means = items.groupby(labels)
        found = means.agg(mean="mean", items="size").reset_index()
        joined = self.reported.merge(found, how="left", on=labels)
        return joined.assign(items=joined["items"].fillna(0).astype("int64"))

    def summary(self) -> Summary:
        """Count the answers, and list what was left out and why."""
        table = self.table
        facts = [("answers", f"{len(table)}"), ("reported values", f"{len(self.reported)}")]
        for name in ("model", "task", "subtask", "prompt", "filter", "metric"):
            values = list(dict.fromkeys(table[name].astype("str")))
            more = f", and {len(values) - 5} more" if len(values) > 5 else ""
            facts.append((name, f"{len(values)}: {', '.join(values[:5])}{more}"))
        means = self.agreement()
        compared = means[means["items"] > 0]
        worst = (compared["value"] - compared["mean"]).abs().max()
        if len(compared):
            text = f"{len(compared)}, largest difference {significant(float(worst))}"
            facts.append(("compared with means", text))
        kinds = self.dropped.groupby(["reason", "metric"], sort=False)["answers"].sum()
        left_out = kinds.reset_index().set_index("reason")
        return Summary("Answers", facts, left_out, ["The table lists what was left out."])

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
