#!/bin/sh
# Installs the files unpacked next to this script, or removes them again.
set -eu

usage() {
  echo "Usage: ./install.sh [--prefix DIR] [--uninstall]"
  echo "Installs rollcall below DIR, /usr/local by default. It never touches the data of nodes and servers."
}

prefix=/usr/local
remove=
while [ $# -gt 0 ]; do
  case $1 in
    --prefix) prefix=${2:?"--prefix needs a directory"}; shift ;;
    --prefix=*) prefix=${1#--prefix=} ;;
    --uninstall) remove=yes ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
case $prefix in
  /*) ;;
  *) prefix=$PWD/$prefix ;;
esac

here=$(dirname "$(readlink -f "$0")")
if [ "$here" = "$(readlink -f "$prefix" || true)" ]; then
  echo "install.sh: $prefix is the folder of this script; choose another prefix" >&2
  exit 1
fi

# Remove everything of an earlier version, so that none of its files remain among the new ones.
rm -rf "$prefix/lib/rollcall" "$prefix/share/doc/rollcall"
if [ -n "$remove" ]; then
  (cd "$here" && find bin share -type f) | while read -r file; do rm -f "$prefix/$file"; done
  echo "removed rollcall from $prefix"
  exit 0
fi
mkdir -p "$prefix"
(cd "$here" && tar -cf - bin lib share) | tar -xf - -C "$prefix" --no-same-owner
echo "$("$prefix/bin/rollcall" --version) is installed in $prefix"
case :$PATH: in
  *":$prefix/bin:"*) ;;
  *) echo "Add $prefix/bin to your PATH to run it as rollcall." ;;
esac
