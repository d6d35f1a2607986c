"""The broken power law on four-digit addition, from Caballero et al. 2023, arXiv:2210.14891.

The data are in the script fit_bnsl_and_extrapolate__4_digit_addition__dataset_size_x-axis.py
(ethancaballero/broken_neural_scaling_laws, commit ffa608f); the values were found by its way of
fitting: a brute-force grid, then least squares of the log loss.
"""

FITTED = 14  # of 17 points; the last three are extrapolated to
VALUES = {
    "a": 0.41389,
    "b": 2.27727,
    "c0": 0.05508,
    "c1": 5.66291,
    "d1": 612.584,
    "f1": 0.059193,
}
ERROR_FITTED, ERROR_EXTRAPOLATED = 0.000598, 0.010916  # root mean square of the log loss
