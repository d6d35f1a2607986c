"""Tables to learn on and to test with: bundled, simulated, and registered data of others.

``list()`` shows them, ``card(name)`` tells what a table holds and what it is good for, and
``load(name)`` returns it. Registered files are downloaded on request at a pinned commit and
checked by sha256; a folder named by the environment variable ``TOOLKIT_DATA_DIR`` is looked at
first.
"""

from toolkit.datasets.cards import Card
from toolkit.datasets.catalog import SIMULATED, available, card, load
from toolkit.datasets.catalog import listing as list
from toolkit.datasets.simulate import EXAMPLE, isoflop_design, simulate_runs

SIMULATED[EXAMPLE.card.name] = EXAMPLE

__all__ = ["Card", "available", "card", "isoflop_design", "list", "load", "simulate_runs"]
