#!/bin/sh
# Makes the virtual environment and installs exactly what the lock files name, checked by hash.
# uv comes by pip, from the same registry as everything else, and trusts what the system trusts.
set -eu
python=${PYTHON:-python3}
venv=${VENV:-.venv}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "k8s-scheduler needs Python 3.11 or newer; $python is $("$python" --version 2>&1)." >&2
  echo "Name another one: make PYTHON=/path/to/python3.12" >&2
  exit 1
}
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  echo "making $venv with $("$python" --version)"
  "$python" -m venv --clear "$venv" || {
    echo "Python's venv module is needed (on Debian: the package python3-venv)." >&2
    exit 1
  }
fi
echo "installing dependencies (about a minute the first time)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
  --requirement tools/uv.lock.txt
"$venv/bin/uv" pip install --system-certs --quiet --python "$venv/bin/python" --require-hashes \
  --requirement requirements.lock --requirement requirements-dev.lock
"$venv/bin/uv" pip install --system-certs --quiet --python "$venv/bin/python" --no-deps --no-build-isolation \
  --editable .
