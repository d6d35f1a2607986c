"""Print the comparison: ``python -m benchmarks [--starts N]``."""

import argparse
import os

# one core for everybody: set before numpy loads its linear algebra
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"


def main() -> None:
    parser = argparse.ArgumentParser(description="Toolkit against peers, CPU time, in one run.")
    parser.add_argument(
        "--starts",
        type=int,
        default=4500,
        help="published starts given to the scipy loop (fewer: scaled up, and said)",
    )
    arguments = parser.parse_args()
    from benchmarks import boundary, chinchilla, exponent_grid
    from benchmarks.timing import table

    scaling = [
        *chinchilla.run(arguments.starts),
        *exponent_grid.run(chinchilla.load_runs()),
        *exponent_grid.growth(),
    ]
    print(table([*scaling, *boundary.run()]))


if __name__ == "__main__":
    main()
