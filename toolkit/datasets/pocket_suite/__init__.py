"""Train and evaluate the pocket suite: several hundred small language models.

The package needs PyTorch and ``tokenizers`` (the ``suite`` extra) and is never imported by the
rest of the toolkit, which reads only the tables it leaves behind. Run it as
``python -m toolkit.datasets.pocket_suite --help``.
"""
