#!/usr/bin/env bash
# Checked-in files that a script renders (vector math, normal tables, operator index, stubs) are what it renders today.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
python tools/vecmath/render.py --check
python -m tp_operators.generate_index --check
python tools/generate_stubs.py --check
