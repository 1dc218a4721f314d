"""Run the command line as `python -m benchbook`, or as `python scripts/benchbook` from a bare checkout."""

import sys
from pathlib import Path

if __package__ in (None, ""):
    # Started as a folder: Python put the package itself on the path, where our modules would
    # answer to top-level names. Its parent is what belongs there.
    package = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != package]
    sys.path.insert(0, str(package.parent))

if sys.version_info < (3, 11):  # noqa: UP036  (a checkout can be started with any Python)
    sys.exit("benchbook needs Python 3.11 or later; this is {}.{}".format(*sys.version_info))

from benchbook.content.problems import lacking

try:
    from benchbook.cli.main import main
except ModuleNotFoundError as error:
    sys.exit(lacking(error))

if __name__ == "__main__":
    main()
