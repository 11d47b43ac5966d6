#!/usr/bin/env bash
# A short run on Python 3.13, where this machine has one.
set -euo pipefail
source "$(dirname "$0")/environment.sh"
newest=""
for candidate in "$(command -v python3.13 || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.13*/bin/python3.13; do
  if [[ -n $candidate ]] && "$candidate" -c 'import venv, sys; assert sys.version_info[:2] == (3, 13)' 2>/dev/null; then
    newest=$candidate
    break
  fi
done
if [[ -z $newest ]]; then
  echo "no Python 3.13 on this machine: nothing run"
  exit 0
fi
export UV_PROJECT_ENVIRONMENT="$scratch/python3.13"
uv sync --quiet --all-packages --python "$newest"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
python="$UV_PROJECT_ENVIRONMENT/bin/python"
"$python" tools/ci/smoke.py
(cd "$work" && "$python" "$OLDPWD/examples/tiny_lm.py" --steps 3 --batch 2)
