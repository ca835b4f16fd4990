#!/bin/sh
# Generate the stubs again and fail when they differ from those in the tree. Generation goes to a temporary folder
# first, so that a checkout with other changes is fine and no process reads a half-written stub; stubs that differ
# are then put in place, to be reviewed and committed.
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
echo "The stubs in $stubs were not those of proto/. They are now: commit them." >&2
exit 1
