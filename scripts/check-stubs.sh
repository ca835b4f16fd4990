#!/bin/sh
# Generate the stubs again and fail if they differ from those in the tree. They are generated in a temporary
# folder first, so that other changes in the checkout do not matter and no process reads a half-written stub.
# Stubs that differ are then copied to the tree, ready for review and commit.
set -eu
cd "$(dirname "$0")/.."

stubs=libs/api/src/gen
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

node_modules/.bin/buf generate --output "$fresh"
if git --no-pager diff --no-index --stat --exit-code "$stubs" "$fresh/$stubs"; then
  exit 0
fi
rm -rf "$stubs"
cp -R "$fresh/$stubs" "$stubs"
echo "The stubs in $stubs did not match proto/ and were generated again. Commit them." >&2
exit 1
