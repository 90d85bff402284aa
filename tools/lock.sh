#!/bin/sh
# Resolves pyproject.toml into lock files: every version pinned, every file hashed, no address.
# uv.lock itself is left out of the repository because it names the registry it was made with
# (docs/adr/0008-dependencies.md).
set -eu
venv=${VENV:-.venv}
uv=$venv/bin/uv
[ -x "$uv" ] || uv=uv
"$uv" lock --quiet
"$uv" export --quiet --frozen --no-dev --no-emit-project --no-header --no-annotate \
  --output-file requirements.lock >/dev/null
"$uv" export --quiet --frozen --only-group dev --no-header --no-annotate \
  --output-file requirements-dev.lock >/dev/null
"$uv" export --quiet --frozen --only-group tool --no-header --no-annotate \
  --output-file tools/uv.lock.txt >/dev/null
"$uv" export --quiet --frozen --only-group build --no-header --no-annotate \
  --output-file tools/build.lock.txt >/dev/null
"$uv" export --quiet --frozen --only-group audit --no-header --no-annotate \
  --output-file tools/audit.lock.txt >/dev/null
if grep -nE '(https?|git)://' requirements.lock requirements-dev.lock tools/*.lock.txt; then
  echo "a lock file names an address" >&2
  exit 1
fi
