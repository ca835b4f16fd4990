#!/bin/sh
# Downloads packages of the Debian release on this machine, for any architecture, without installing them:
#   deploy/debian/fetch.sh ARCHITECTURE FOLDER PACKAGE...
# For GCC's libraries it also downloads the package with their licence.
set -eu

architecture=${1:?"which architecture?"}
folder=${2:?"name a folder"}
shift 2
state=$(mktemp -d)
trap 'rm -rf "$state"' EXIT
mkdir -p "$folder" "$state/lists/partial" "$state/cache/archives/partial"
cd "$folder"

# The machine's package lists may be old, missing, or for another architecture. Nothing is installed, so apt need not
# drop its privileges to download.
apt() {
  apt-get -qq -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" \
    -o "Dir::State::Lists=$state/lists" -o "Dir::State::Status=/dev/null" -o "Dir::Cache=$state/cache" \
    -o APT::Sandbox::User=root "$@"
}
apt update
apt download "$@"
for package in *.deb; do
  dpkg-deb --field "$package" Depends
done | tr ',' '\n' | sed -n 's/^ *\(gcc-[0-9]*-base\).*/\1/p' | sort -u > "$state/licences"
# shellcheck disable=SC2046 # Names of packages have no blanks.
[ ! -s "$state/licences" ] || apt download $(cat "$state/licences")
