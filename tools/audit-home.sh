#!/bin/sh
# Makes .audit: an environment of its own for pip-audit and what comes with it, from their lock file,
# checked by hash.
set -eu
venv=${VENV:-.venv}
home=.audit
cmp -s tools/audit.lock.txt "$home/installed" 2>/dev/null && exit 0
rm -rf "$home"
"$venv/bin/python" -m venv "$home"
"$venv/bin/uv" pip install --system-certs --quiet --python "$home/bin/python" --require-hashes \
  --requirement tools/audit.lock.txt
cp tools/audit.lock.txt "$home/installed"
