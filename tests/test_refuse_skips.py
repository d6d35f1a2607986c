"""``--refuse-skips`` fails a session that skipped anything, in one process or in several."""

from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SKIPPING = """
import pytest

def test_passes():
    pass

@pytest.mark.skip(reason="no such data here")
def test_marked():
    pass

def test_inside():
    pytest.skip("not today")
"""
SKIPPING_MODULE = "import pytest; pytest.skip('whole module', allow_module_level=True)"
CLEAN = """
import pytest

def test_passes():
    pass

@pytest.mark.xfail(reason="known")
def test_known_failure():
    assert False
"""


@pytest.fixture(params=[[], ["-n", "2"]], ids=["one-process", "xdist"])
def run(pytester, request):
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))

    def run(*options):
        return pytester.runpytest_subprocess(*request.param, "-p", "no:nbval", *options)

    return run


def test_skips_pass_without_the_option(run, pytester):
    pytester.makepyfile(SKIPPING)
    assert run().ret == 0


def test_skips_fail_with_the_option_and_are_listed(run, pytester):
    pytester.makepyfile(test_one=SKIPPING, test_two=SKIPPING_MODULE)
    result = run("--refuse-skips")
    assert result.ret == 1
    shown = result.stdout.str()
    assert "test_one.py::test_marked: no such data here" in shown
    assert "test_one.py::test_inside: not today" in shown
    assert "test_two.py: whole module" in shown
    assert "3 skipped, and --refuse-skips allows none" in shown


def test_expected_failures_are_no_skips(run, pytester):
    pytester.makepyfile(CLEAN)
    assert run("--refuse-skips").ret == 0
