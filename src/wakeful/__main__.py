"""``python -m wakeful`` is the ``wakeful`` command."""

from wakeful.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
