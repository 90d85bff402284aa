#!/bin/sh
# Writes the list of what the image holds. The library for its format is locked with the audit's.
set -eu
venv=${VENV:-.venv}
sh tools/audit-home.sh
packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
exec .audit/bin/python tools/sbom.py "$packages" "${1:-dist/k8s-scheduler.cdx.json}"
