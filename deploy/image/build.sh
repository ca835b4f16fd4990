#!/bin/sh
# Builds the container image from a tarball that `make dist` made:
#   deploy/image/build.sh dist/rollcall-0.1.0-linux-x64.tar.gz [BASE]
# Writes two files next to the tarball: NAME.oci.tar, an OCI layout (podman, skopeo, Kubernetes' registries), and
# NAME.docker.tar for `docker load`. BASE is an image to build on, such as that of a distribution with glibc. Without
# it the image contains only Debian's C and C++ libraries and no shell. `rollcall up` with its own Postgres needs a
# shell; `serve` and `agent` do not. The script needs buildah, and for the libraries Debian's apt-get and dpkg-deb.
# The Debian packages in the image are listed in /usr/share/doc/rollcall/debian-packages.tsv, and in the file that
# DEBIAN_PACKAGES names.
set -eu

tarball=${1:?"which tarball?"}
base=${2:-scratch}
here=$(dirname "$(readlink -f "$0")")
name=$(basename "$tarball" .tar.gz)
case $name in
  *-linux-x64) architecture=amd64 ;;
  *-linux-arm64) architecture=arm64 ;;
  *) echo "build.sh: $name is not a tarball of a platform; make one with make dist" >&2; exit 1 ;;
esac
version=$(echo "$name" | sed 's/-linux-.*//; s/.*-//')
out=$(cd "$(dirname "$tarball")" && pwd)
# This storage driver has no requirements on the kernel, so it also works in containers.
export STORAGE_DRIVER="${STORAGE_DRIVER:-vfs}" BUILDAH_ISOLATION="${BUILDAH_ISOLATION:-chroot}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/rootfs
mkdir -p "$root/usr" "$root/etc" "$root/tmp" "$root/var/lib" "$work/state"
tar -xzf "$tarball" -C "$root/usr" --strip-components=1 --no-same-owner
time=$(stat -c %Y "$root/usr/bin/rollcall")
commit=$(sed -n 's/.*"commit":"\([^"]*\)".*/\1/p' "$root/usr/lib/rollcall/package.json")
rm -f "$root/usr/install.sh" "$root/usr/README.md" "$root/usr/LICENSE"

if [ "$base" = scratch ]; then
  "$here/../debian/fetch.sh" "$architecture" "$work/debs" libc6 libgcc-s1 libstdc++6
  for package in "$work"/debs/*.deb; do
    dpkg-deb --extract "$package" "$work/libraries"
  done
  for package in "$work"/debs/*.deb; do
    dpkg-deb --show --showformat='${Package}\t${Version}\t${Architecture}\t' "$package"
    sha512sum < "$package" | cut -d ' ' -f 1
  done > "$root/usr/share/doc/rollcall/debian-packages.tsv"
  [ -z "${DEBIAN_PACKAGES-}" ] || cp "$root/usr/share/doc/rollcall/debian-packages.tsv" "$DEBIAN_PACKAGES"
  find "$work/libraries/usr/share/doc" -type f ! -name copyright -delete
  rm -rf "$work/libraries/usr/share/lintian" "$work/libraries/usr/lib/"*/gconv
  cp -a "$work/libraries/." "$root/"
  echo 'rollcall:x:65532:65532:Rollcall:/var/lib/rollcall:/nonexistent' > "$root/etc/passwd"
  echo 'rollcall:x:65532:' > "$root/etc/group"
  echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
fi
chown -R 0:0 "$root"
chmod -R u=rwX,go=rX "$root"
chmod 1777 "$root/tmp"
find "$root" "$work/state" -exec touch --no-dereference --date="@$time" {} +

image=localhost/rollcall-build:$$
buildah build --quiet --format oci --arch "$architecture" --build-arg "BASE=$base" --timestamp "$time" \
  --label "org.opencontainers.image.title=rollcall" \
  --label "org.opencontainers.image.description=Control plane for fleets of machines" \
  --label "org.opencontainers.image.licenses=Apache-2.0" \
  --label "org.opencontainers.image.version=$version" \
  --label "org.opencontainers.image.revision=$commit" \
  --label "org.opencontainers.image.created=$(date --utc --date="@$time" +%Y-%m-%dT%H:%M:%SZ)" \
  --file "$here/Containerfile" --tag "$image" "$work" > /dev/null
rm -f "$out/$name.oci.tar" "$out/$name.docker.tar"
buildah push --quiet "$image" "oci-archive:$out/$name.oci.tar:$version"
buildah push --quiet "$image" "docker-archive:$out/$name.docker.tar:rollcall:$version"
buildah rmi "$image" > /dev/null
echo "$out/$name.oci.tar"
echo "$out/$name.docker.tar"
