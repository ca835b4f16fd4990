#!/bin/sh
# Fail if the schema breaks clients of the last release, whose schema is in baseline/proto. Usage:
# check-breaking.sh [FOLDER]   the schema to check; proto/ by default.
#
# Both schemas are laid out as workspaces with the same two modules, because buf compares modules pairwise.
# Both use the same third_party, because its files belong to other projects.
set -eu
schema=$(cd "${1:-$(dirname "$0")/../proto}" && pwd)
cd "$(dirname "$0")/.."

workspaces=$(mktemp -d)
trap 'rm -rf "$workspaces"' EXIT

lay_out() { # name, folder of the schema
  mkdir "$workspaces/$1"
  cp -R "$2" "$workspaces/$1/proto"
  cp -R third_party buf.yaml "$workspaces/$1/"
}
lay_out schema "$schema"
lay_out baseline baseline/proto

buf=$PWD/node_modules/.bin/buf
cd "$workspaces/schema"
"$buf" breaking --against ../baseline
