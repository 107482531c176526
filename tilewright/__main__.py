"""``python -m tilewright`` is the command ``tilewright``."""

from tilewright.cli.app import main

if __name__ == "__main__":
    main()
