#!/bin/sh
# Looks for known vulnerabilities in what is locked, and through the tree.
set -eu
venv=${VENV:-.venv}
sh tools/audit-home.sh
exec "$venv/bin/python" tools/audit.py .audit/bin/pip-audit
