"""Print the path of a registry package's file that the build needs: `locate.py DISTRIBUTION END_OF_PATH`."""

from __future__ import annotations

import importlib.metadata
import os
import sys

distribution, ending = sys.argv[1:]
for file in importlib.metadata.files(distribution) or ():
    path = os.path.normpath(str(file.locate()))
    if path.endswith(os.sep + os.path.normpath(ending)):
        print(path)
        break
else:
    sys.exit(f"{distribution} has no file that ends in {ending}")
