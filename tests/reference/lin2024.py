"""Fine-tuning 30 models on FLAN and Gigaword: errors of the laws and quality of the selection.

Sources: Lin et al. 2024, arXiv:2402.02314, and the repository published with it
(linhaowei1/Fine-tuning-Scaling-Law): results/rmsd.csv (errors), results/tab1.txt (selection,
percent). The means "here" were found by an independent least-squares fit of the same points.
"""

FULL = 1_638_400  # examples of the full fine-tuning
FRACTIONS = (8, 16, 32, 64, 128, 256, 512)

# Mean root mean square error of log loss over the models, published and here.
RECTIFIED = {"flan": (0.00648, 0.00640), "gigaword": (0.00515, 0.00507)}
PLAIN = {"flan": (0.03583, 0.03487), "gigaword": (0.01057, 0.01005)}

PEARSON = {
    ("flan", "accept_then_stop"): (90.9, 73.1, 65.5, 61.1, 52.2, 50.5, 45.6),
    ("flan", "small_subset"): (60.9, 46.5, 36.4, 29.0, 24.6, 20.9, 16.4),
    ("flan", "zero_shot"): (-10.7,) * 7,
    ("gigaword", "accept_then_stop"): (98.9, 97.6, 96.9, 92.0, 91.1, 89.1, 91.0),
    ("gigaword", "small_subset"): (93.2, 89.3, 85.4, 80.9, 76.2, 69.9, 64.8),
    ("gigaword", "zero_shot"): (-49.2,) * 7,
}
RELATIVE_ACCURACY = {
    ("flan", "accept_then_stop"): (93.6, 93.2, 93.2, 93.2, 85.3, 93.2, 93.2),
    ("flan", "small_subset"): (93.2, 93.2, 93.2, 93.2, 59.6, 59.6, 59.6),
    ("flan", "zero_shot"): (85.3,) * 7,
    ("flan", "size"): (59.6,) * 7,
    ("gigaword", "small_subset"): (87.6, 87.6, 87.6, 71.3, 71.3, 71.3, 71.3),
    ("gigaword", "zero_shot"): (71.3,) * 7,
    ("gigaword", "size"): (71.3,) * 7,
}
