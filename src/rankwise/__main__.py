"""``python -m rankwise`` is the command line."""

import sys

from rankwise.cli import main

if __name__ == "__main__":
    sys.exit(main())
