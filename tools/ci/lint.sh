#!/usr/bin/env bash
# Style (ruff) and who may import whom (import-linter).
set -euo pipefail
source "$(dirname "$0")/environment.sh"
ruff check .
lint-imports
