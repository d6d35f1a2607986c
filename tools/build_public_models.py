"""Build the bundled table of public models from two fact tables, and report what was changed.

Usage: python tools/build_public_models.py public_models.csv crosscheck_scores.csv

The first table holds one row per model with its sources, the second pairs of scores of one model
on one benchmark from two sources. The report on stdout gives the counts that the card tells.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

OUT = Path(__file__).parents[1] / "toolkit" / "datasets" / "bundled" / "public_models.csv"
DISAGREE = 0.03  # scores further apart than this cannot both stand

SCORES = {
    "MMLU": "mmlu",
    "ARC_C": "arc_challenge",
    "HellaSwag": "hellaswag",
    "WinoGrande": "winogrande",
    "TruthfulQA": "truthfulqa",
    "GSM8K": "gsm8k",
    "HumanEval": "humaneval",
    "IFEval": "ifeval",
    "BBH": "bbh",
    "MATH_Lvl5_feb2025": "math_lvl5",
    "MATH_Lvl5_apr2025": "math_lvl5_rescored",
    "GPQA": "gpqa",
    "MUSR": "musr",
    "MMLU_Pro": "mmlu_pro",
}
EVIDENCE = {"A": "A", "B": "B", "C": "C", "C*": "D"}
RELEASED_FROM = {
    "Epoch": "epoch",
    "HF upload date": "upload",
    "socialfoundations (month)": "month",
}
RERUN = "socialfoundations lm-eval"  # the leaderboard's own harness and number of shots, run again

# (benchmark, beginning of the other source) -> how its protocol differs from the column's.
OTHER_PROTOCOL = {
    ("WinoGrande", "LLaMA: Open"): "0 shots",
    ("WinoGrande", "Llama 2: Open"): "0 shots",
    ("WinoGrande", "Mixtral of"): "0 shots",
    ("WinoGrande", "Training Compute"): "0 shots",
    ("WinoGrande", "Phi-3"): "generated answers: 0.54 for Mistral-7B, elsewhere 0.75 to 0.78",
    ("HellaSwag", "Phi-3"): "generated answers",
    ("GSM8K", "Phi-3"): "8 shots with reasoning",
    ("GSM8K", "Mixtral of"): "8 shots, majority of 8 answers",
    ("GSM8K", "Gemma: Open"): "8 shots",
    ("GSM8K", "Standford HELM"): "HELM's prompt and answer parsing",
    ("BBH", ""): "written reasoning and exact match; the column is likelihood of choices",
}
NOT_BASE = {
    "RWKV/rwkv-raven-14b": "instruction-tuned",
    "microsoft/phi-4": "released after instruction tuning",
}
DISTINCT_TOKENS = "OPT"  # its 0.18 T are the distinct tokens of the corpus, not the tokens seen
WRONG_PARAMS = {"google/gemma-2-2b": 2.6e9}  # the name's 2 B leaves out most embeddings
UNCHECKED_FLOPS = ("tiiuae/falcon-mamba-7b",)  # one figure, no token count to hold it against


def main(models_path: str, pairs_path: str) -> None:
    """Write the bundled table and print the report."""
    facts = pd.read_csv(models_path)
    pairs = pd.read_csv(pairs_path)
    facts = facts[~facts["name"].isin(NOT_BASE)].reset_index(drop=True)
    notes: dict[str, list[str]] = {name: [] for name in facts["name"]}
    for name, note in zip(facts["name"], facts["notes"], strict=True):
        if isinstance(note, str) and note.startswith("MoE"):
            notes[name].append("mixture of experts")
    table = compute_columns(facts, notes)
    scores = facts[list(SCORES)].rename(columns=SCORES)
    blank_disagreements(scores, facts["name"], pairs, notes)
    table = pd.concat([table, scores], axis=1)
    table["note"] = ["; ".join(notes[name]) for name in facts["name"]]
    table["source"] = facts["source"].str.split().str.join(" ")
    verify(table)
    table.to_csv(OUT, index=False, lineterminator="\n")
    report(table, facts, pairs)


def compute_columns(facts: pd.DataFrame, notes: dict[str, list[str]]) -> pd.DataFrame:
    """Parameters, tokens, compute and dates, in counts, with what each rests on."""
    params = facts["params_B"] * 1e9
    active = facts["active_params_B"] * 1e9
    for name, count in WRONG_PARAMS.items():
        params[facts["name"] == name] = active[facts["name"] == name] = count
        notes[name].append("parameters with embeddings")
    tokens = facts["tokens_T"] * 1e12
    distinct = facts["family"] == DISTINCT_TOKENS
    for name in facts["name"][distinct]:
        notes[name].append("tokens blank: the 0.18 T of the sources are distinct tokens")
    tokens = tokens.mask(distinct)
    epoch = facts["flops_epoch"].mask(facts["name"].isin(UNCHECKED_FLOPS))
    for name in UNCHECKED_FLOPS:
        notes[name].append("compute blank: one figure that no token count supports")
    from_tokens = 6 * active * tokens
    for name, ratio in zip(facts["name"], epoch / from_tokens, strict=True):
        if abs(np.log(ratio)) > np.log(1.25):
            notes[name].append(f"Epoch AI gives {ratio:.2f} times these FLOPs")
    rule = np.select([from_tokens.notna(), epoch.notna()], ["6ND", "epoch"], default="")
    return pd.DataFrame(
        {
            "model": facts["name"],
            "family": facts["family"],
            "params": significant_digits(params),
            "params_active": significant_digits(active),
            "tokens": significant_digits(tokens),
            "tokens_evidence": facts["token_evidence"].map(EVIDENCE).where(tokens.notna()),
            "flops": significant_digits(from_tokens.fillna(epoch)),
            "flops_rule": rule,
            "released": facts["release_date"],
            "released_from": facts["release_source"].map(RELEASED_FROM),
        }
    )


def significant_digits(values: pd.Series) -> pd.Series:
    """Round to six digits, so that the file shows 8.4e22 and not 8.399999999999999e22."""
    return values.map(lambda value: float(f"{value:.5e}"))


def blank_disagreements(
    scores: pd.DataFrame, names: pd.Series, pairs: pd.DataFrame, notes: dict[str, list[str]]
) -> None:
    """Blank a score that another source of the same protocol contradicts."""
    for key, found in pairs.groupby(["model", "metric"]):
        model, metric = map(str, key)
        if model in NOT_BASE or not contradicted(metric, found):
            continue
        scores.loc[(names == model).to_numpy(), SCORES[metric]] = np.nan
        notes[model].append(f"{SCORES[metric]} blank: sources disagree")


def contradicted(metric: str, found: pd.DataFrame) -> bool:
    """Whether the other sources of one score leave it in doubt."""
    far = found["diff"].abs() > DISAGREE
    rerun = found["source2"] == RERUN
    if rerun.any():  # the same protocol decides, whatever papers report under theirs
        return bool(far[rerun].any())
    papers = found.loc[far, "source2"].str.removeprefix("Epoch external: ")
    return any(
        not any(metric == name and paper.startswith(start) for name, start in OTHER_PROTOCOL)
        for paper in papers
    )


def verify(table: pd.DataFrame) -> None:
    """Stop when the table breaks one of its own rules."""
    assert table["model"].is_unique
    assert not table["model"].str.lower().duplicated().any()
    assert (table["params_active"] <= table["params"]).all()
    assert table["tokens"].dropna().between(1e9, 1e14).all()
    tokens_per_param = (table["tokens"] / table["params_active"]).dropna()
    assert tokens_per_param.between(1, 1e5).all()
    assert table["released"].dropna().str.fullmatch(r"20\d\d-[01]\d(-[0-3]\d)?").all()
    scores = table[list(SCORES.values())]
    assert (scores.min() >= 0).all()
    assert (scores.max() <= 1).all()
    full = scores.dropna(subset=["mmlu", "hellaswag", "winogrande"])
    assert not full.duplicated().any()


def report(table: pd.DataFrame, facts: pd.DataFrame, pairs: pd.DataFrame) -> None:
    """Print the figures that the card tells."""
    print(f"{len(table)} models, {OUT.stat().st_size} bytes, left out: {NOT_BASE}")
    print("tokens:", table["tokens_evidence"].value_counts(dropna=False).to_dict())
    print("compute:", table["flops_rule"].value_counts().to_dict())
    print("released:", table["released_from"].value_counts(dropna=False).to_dict())
    both = (table["flops"] / facts["flops_epoch"]).where(table["flops_rule"] == "6ND").dropna()
    within = (np.abs(np.log(both)) < np.log(1.1)).sum()
    print(f"6ND against Epoch: {len(both)} rows, {within} within 10 %, worst {both.min():.2f}")
    print("blank scores:", table["note"].str.count(" blank: sources disagree").sum())
    print(table["note"].str.extractall(r"(\w+) blank: sources")[0].value_counts().to_dict())
    pairs = pairs[~pairs["model"].isin(NOT_BASE)]
    other = pairs["source2"] != RERUN
    for label, chosen in (("rerun", pairs[~other]), ("papers", pairs[other])):
        small = chosen["diff"].abs() <= DISAGREE
        rms = np.sqrt((chosen.loc[small, "diff"] ** 2).mean())
        print(f"{label}: {len(chosen)} pairs, {(~small).sum()} beyond 3 points, rms {rms:.4f}")
        by_metric = chosen[small].groupby("metric")["diff"].apply(lambda d: np.sqrt((d**2).mean()))
        print("   ", by_metric.round(4).to_dict())


if __name__ == "__main__":
    main(*sys.argv[1:])
