"""The over-training law on the runs published with Gadre et al. 2024, arXiv:2403.08540.

Relative errors of the predicted loss on C4 validation, as the published notebook
scaling_explorer.ipynb (mlfoundations/scaling, commit a003c49) prints them for RedPajama.
"""

FITTED = [  # multiple of 20 tokens per parameter, sizes of the runs that the laws are fitted to
    (1.0, (1.0e7, 5.0e8)),
    (16.0, (1.0e7, 2.0e7)),
]
ERRORS_IN_PERCENT = {"rpj-open_lm_1b-32.0": 0.7103, "rpj-open_lm_7b-1.0": 0.7320}
