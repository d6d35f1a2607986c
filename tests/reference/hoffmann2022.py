"""Published numbers of Hoffmann et al. 2022, arXiv:2203.15556."""

# Table A4: layers, width, feed-forward width, heads, head width, ratio of their FLOPs to 6 N D.
# The ratios follow from the formulas of appendix F for a context of 2,048 and a vocabulary of
# 32,000 when embeddings and logits are left out of the FLOPs but not of N; with them, as the text
# says, the first ratio would be 1.58.
FLOP_RATIOS = [
    (10, 640, 2560, 10, 64, "1.03"),
    (20, 1024, 4096, 16, 64, "1.10"),
    (24, 1280, 5120, 10, 128, "1.08"),
    (26, 1792, 7168, 14, 128, "1.04"),
    (28, 2048, 8192, 16, 128, "1.03"),
    (40, 3584, 14336, 28, 128, "0.99"),
]
CONTEXT, VOCABULARY = 2048, 32000

# Table A9: parameters in millions, width, feed-forward width, head width, heads, layers; the rows
# whose heads fill the width (the other rows of the table do not add up to their parameters).
SIZES = [
    (44, 512, 2048, 64, 8, 8),
    (117, 768, 3072, 64, 12, 12),
    (306, 1024, 4096, 64, 16, 20),
    (1018, 1792, 7168, 128, 14, 23),
    (2980, 2560, 10240, 128, 20, 34),
    (6796, 3584, 14336, 128, 28, 40),
    (16183, 5120, 20480, 128, 40, 47),
]

# Table 2: exponent of compute in the best size, with the 10th and 90th percentile.
EXPONENTS = {1: (0.50, 0.488, 0.502), 2: (0.49, 0.462, 0.534), 3: (0.46, 0.454, 0.455)}
