#!/usr/bin/env bash
# Debian packages that run.py asks for, qemu-user for the run on a simulated old processor, and a compiler for aarch64.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends python3 python3-dev python3-venv g++ git qemu-user \
  g++-aarch64-linux-gnu >/dev/null
