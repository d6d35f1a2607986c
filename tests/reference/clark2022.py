"""The routed law at the end of training of the published runs.

Source of the runs: Clark et al. 2022, arXiv:2202.01169 (google-deepmind/
scaling_laws_for_routing), seed 42, one expert per token, half of the layers routed, step 249,000.
The refits are an independent least-squares fit; a router's runs and the five dense ones.
"""

DENSE_EXPONENT, DENSE_SIZE = 0.0785, 3.69e13  # five dense models

# a, b, c, d, E_start, E_max, rounded, as later work cites them
CITED = {
    "S-Base": (-0.082, -0.108, 0.009, 1.104, 1.847, 314.5),
    "RL-R": (-0.083, -0.126, 0.012, 1.111, 1.880, 470.0),
    "Hash": (-0.087, -0.136, 0.012, 1.157, 4.175, 477.7),
}
REFIT = {
    "S-Base": (-0.0830, -0.1180, 0.00992, 1.1136, 2.08, 239.0),
    "RL-R": (-0.0827, -0.1234, 0.01123, 1.1070, 1.72, 470.0),
    "Hash": (-0.0874, -0.1384, 0.01264, 1.1595, 4.27, 427.0),
}
# Root mean square error of log10 loss: of the refit, of the printed constants.
ERROR = {"S-Base": (0.00323, 0.00369), "RL-R": (0.00323, 0.00774), "Hash": (0.00298, 0.00525)}
