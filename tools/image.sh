#!/bin/sh
# Builds the image with whichever builder the machine has.
set -eu
image=$1
if command -v docker >/dev/null 2>&1 && docker info >/dev/null 2>&1; then
  exec docker build --tag "$image" .
elif command -v podman >/dev/null 2>&1; then
  exec podman build --tag "$image" .
elif command -v buildah >/dev/null 2>&1; then
  exec buildah build --tag "$image" .
fi
echo "No image builder found: make image needs a running docker, podman or buildah." >&2
echo "Without one, make build makes the wheel, which pip installs anywhere." >&2
exit 1
