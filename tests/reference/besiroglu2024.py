"""The Chinchilla law on the 245 points read off figure 4 of Hoffmann et al. 2022.

Sources: Besiroglu, Erdil, Barnett and You 2024, arXiv:2404.10102, table 1 and the notebook
published with it (epoch-research/analyzing-chinchilla, commit 9225883); optima marked "polished"
were found here by alternating BFGS and Nelder-Mead from 40 perturbed starts, which agree to 1e-9.
"""

KEPT = 240  # of 245 points: those with the five highest losses are left out

# Polished; Huber loss with delta 1e-3 on log loss, summed over the 240 points.
OBJECTIVE_240 = 0.0010182740178006
OPTIMUM_240 = {
    "A": 477.825864,
    "B": 2143.41733,
    "E": 1.817218097,
    "alpha": 0.347310498,
    "beta": 0.367172432,
}
TOKENS_PER_PARAM_240 = 17.921  # at COMPUTE
COMPUTE = 5.76e23  # FLOPs of Chinchilla itself

# Polished; the same over all 245 points.
OPTIMUM_245 = {"A": 495.73, "B": 12846.0, "E": 1.89134, "alpha": 0.34931, "beta": 0.45305}

# Printed in the notebook: sum of absolute residuals at its maximum-likelihood estimate.
SUM_OF_ABSOLUTE_240 = 1.129494659

# Printed in the notebook: bounds of 95 %, 4,000 resamples drawn by
# numpy.random.RandomState(42).choice(240, size=240, replace=True).
RESAMPLES, SEED = 4000, 42
BOUNDS_240 = {
    "A": (285.2, 743.6),
    "B": (1042.0, 5810.0),
    "E": (1.769, 1.871),
    "alpha": (0.317, 0.373),
    "beta": (0.331, 0.415),
}
