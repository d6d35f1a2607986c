"""Test set-up shared by the unit tests and the notebooks."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent
CELL_TIMEOUT = 120.0

pytest_plugins = ["pytester"]


def pytest_addoption(parser):
    """Add ``--refuse-skips``, for machines on which every test is meant to run."""
    parser.addoption(
        "--refuse-skips",
        action="store_true",
        help="fail the session when any test was skipped, and list what was skipped",
    )


def pytest_configure(config):
    """Set nbval's options here, so that they hold from any working directory."""
    config.pluginmanager.register(SkipCollector(), "skip-collector")
    option = config.option
    if getattr(option, "nbval", False):
        option.nbval_current_env = True
        option.nbval_cell_timeout = min(option.nbval_cell_timeout, CELL_TIMEOUT)
        if option.nbval_sanitize_with is None:
            option.nbval_sanitize_with = str(ROOT / "tests" / "nbval_sanitize.cfg")


def pytest_collection_modifyitems(items):
    """Skip the cells of a notebook whose registered data cannot be reached."""
    reasons = {}
    for item in items:
        notebook = getattr(item.parent, "nb", None)
        if notebook is None:
            continue
        if item.path not in reasons:
            from tools.notebooks import unreachable_data

            reasons[item.path] = unreachable_data(notebook)
        if reasons[item.path]:
            item.add_marker(pytest.mark.skip(reason=reasons[item.path]))


class SkipCollector:
    """Remembers every skip, of a test or of a whole module, for ``--refuse-skips``.

    Workers of pytest-xdist send their reports to the main process, so that one decides.
    """

    def __init__(self):
        self.skipped = []

    def pytest_runtest_logreport(self, report):
        """Note a skipped test; an expected failure is no skip."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self.note(report)

    def pytest_collectreport(self, report):
        """Note a module that skipped itself while it was imported."""
        if report.skipped:
            self.note(report)

    def note(self, report):
        """Keep the test's name and the reason it gave."""
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        self.skipped.append(f"{report.nodeid}: {str(reason).removeprefix('Skipped: ')}")

    def pytest_sessionfinish(self, session):
        """Turn skips into a failed session where they are refused."""
        if self.skipped and session.config.option.refuse_skips:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter, config):
        """List what was skipped against the rule."""
        if self.skipped and config.option.refuse_skips:
            terminalreporter.section("refused skips", red=True)
            for line in self.skipped:
                terminalreporter.line(line)
            terminalreporter.line(
                f"{len(self.skipped)} skipped, and --refuse-skips allows none: the session failed."
            )
