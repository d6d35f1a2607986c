"""The two-step predictions of the OLMo ladder for its 13B model, as published.

Source: Bhagia et al. 2024, arXiv:2412.04403, and allenai/OLMo-ladder at commit 67a3f44, files
step1_main.csv, step2_main.csv and chained_main.csv (in the registered table olmo_ladder_errors);
settings from the head of its fitting scripts and its configuration final.json: sizes 190M to
1.3B, token multiples 1, 2, 5 and 10 (first runs), loss of a run from the mean of its last 5 rows,
score curve from the moving average over 5 of all but the first 10 % of rows, tied to a perfect
score at zero loss, MMLU as the weighted mean of its four parts.
"""

PARAMS, TOKENS = 13_202_396_160, 5_000_088_518_656  # the target of the published tables
LARGEST_FITTED = 2e9
SKIPPED, WINDOW = 0.1, 5
MMLU = {"stem": 0.215, "humanities": 0.335, "social_sciences": 0.219, "other": 0.231}
