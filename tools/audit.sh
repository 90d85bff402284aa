#!/bin/sh
# Looks for known vulnerabilities in what is locked, and through the tree. pip-audit gets an
# environment of its own, from its own lock file, checked by hash.
set -eu
venv=${VENV:-.venv}
home=.audit
if ! cmp -s tools/audit.lock.txt "$home/installed" 2>/dev/null; then
  rm -rf "$home"
  "$venv/bin/python" -m venv "$home"
  "$venv/bin/uv" pip install --system-certs --quiet --python "$home/bin/python" --require-hashes \
    --requirement tools/audit.lock.txt
  cp tools/audit.lock.txt "$home/installed"
fi
exec "$venv/bin/python" tools/audit.py "$home/bin/pip-audit"
