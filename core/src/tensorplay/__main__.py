"""`python -m tensorplay`: the `tp` command."""
from ._cli import main

raise SystemExit(main())
