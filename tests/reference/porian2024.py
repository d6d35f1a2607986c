"""Exponents of compute in the best size on the isoFLOP points of Porian et al. 2024.

Points: arXiv:2406.19146, formll/resolving-scaling-law-discrepancies, commit 0dc60d9. Exponents:
recomputed from them with the published procedure (Akima interpolation of log loss in log params
on 25 points per gap, minima on the first or last point left out, least squares on logarithms)
without its weights, independently of this package.
"""

# (hparams, warmup, decay, param_count): RefinedWeb, OpenWebText2
EXPONENTS = {
    ("base", "long", "kaplan", "kaplan"): ("0.8348", "0.8707"),
    ("base", "long", "kaplan", "standard"): ("0.7003", "0.7036"),
    ("base", "short", "kaplan", "standard"): ("0.6055", "0.6047"),
    ("base", "short", "chinchilla", "standard"): ("0.5715", "0.5671"),
    ("tuned", "short", "const", "standard"): ("0.4970", "0.5181"),
}
POINTS_PER_GAP = 25
