"""Whatever stands in a field of a JSON file, a reader returns answers or raises `DataError`."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.readers import helm, inspect, lighteval, olmes

DATA = Path(__file__).parent / "data"
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 2, 10**400])
    | st.floats()
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value, depth):
    """Yield the path of every field down to a depth; of a list, the first entry only."""
    fields = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for name, inner in fields:
        yield (name,)
        if depth > 1 and isinstance(inner, dict | list):
            yield from ((name, *rest) for rest in places(inner, depth - 1))


def replaced(value, path, new):
    value = copy.deepcopy(value)
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return value


def spared(value):
    """Leave out what no reader looks at: there, any content is fine."""
    for sample in value.get("samples", []) if isinstance(value, dict) else []:
        for name in ("events", "messages", "output", "events_data"):
            sample.pop(name, None)
    return value


CASES = {
    "log.json": (inspect, "inspect/log.json"),
    "stats.json": (helm, "helm/stats.json"),
    "run_spec.json": (helm, "helm/run_spec.json"),
    "per_instance_stats.json": (helm, "helm/per_instance_stats.json"),
    "results_2026-05-05T10-00-00.json": (lighteval, "lighteval/results.json"),
    "task-000-t-metrics.json": (olmes, "olmes/task-000-arc_challenge-metrics.json"),
    "task-000-t-predictions.jsonl": (olmes, "olmes/task-000-arc_challenge-predictions.jsonl"),
}


@pytest.mark.parametrize("name", CASES)
def test_any_value_anywhere_is_read_or_refused(tmp_path_factory, name):
    reader, source = CASES[name]
    text = (DATA / source).read_text()
    value = spared(json.loads(text.splitlines()[0] if name.endswith("l") else text))
    fields = sorted(places(value, 5), key=str)

    @given(path=st.sampled_from(fields), new=ANYTHING)
    @settings(deadline=None, max_examples=20)
    def read(path, new):
        folder = tmp_path_factory.mktemp("any")
        if reader is helm:
            for other in ("run_spec.json", "per_instance_stats.json"):
                (folder / other).write_text((DATA / "helm" / other).read_text())
        (folder / name).write_text(json.dumps(replaced(value, path, new)))
        try:
            answers = reader(folder)
        except DataError:
            return
        assert answers.table["score"].between(0, 1).all()
        answers.summary().text()

    read()
