#!/bin/sh
# Installs Rollcall's agent on this machine as a service, and joins it to a control plane. The control plane serves this
# script, and `rollcall token create` prints the line that runs it. If it fails, it undoes its changes.
set -eu

usage() {
  cat <<'END'
Usage: join.sh --server URL [--pin sha256//KEY] [--ca-fingerprint DIGEST | --ca-file FILE] [--name NAME]

Run it as root. It reads the join token from the file that ROLLCALL_JOIN_TOKEN_FILE names, or else from
ROLLCALL_JOIN_TOKEN.

  --server URL             the control plane (its registry), such as https://control-plane.example.org:7700
  --pin sha256//KEY        the public key of its certificate, as for `curl --pinnedpubkey`, for downloads
  --ca-fingerprint DIGEST  the authority that the agent trusts: sha256:...
  --ca-file FILE           the same as a PEM file, which also verifies downloads
  --name NAME              the node's id; default: the host name
  --insecure-plaintext     allow http:// to another machine; anyone on the network path can replace the package
END
}

server='' pin='' ca_fingerprint='' ca_file='' name='' insecure='' token='' given_file=''
# A directory that stands for /, for tests.
root=${ROLLCALL_JOIN_ROOT:-}
config=$root/etc/rollcall/agent.yaml
token_file=$root/etc/rollcall/join-token
authority=$root/etc/rollcall/join-authority.pem
state=$root/var/lib/rollcall-agent
unit=rollcall-agent.service
# What this run has changed, and has to undo if it fails.
work='' installed='' configured='' had_state='' had_config=''

say() { printf 'join.sh: %s\n' "$1"; }

die() {
  say "$1" >&2
  exit 1
}

last_line() { # file
  sed '/^[[:space:]]*$/d' "$1" | tail -n 1
}

# Called when the script ends, for any reason.
finish() {
  status=$?
  trap - EXIT
  set +e
  if [ "$status" -ne 0 ] && [ -n "$configured" ]; then
    systemctl disable --now "$unit" > /dev/null 2>&1
    rm -f "$token_file" "$authority" "$config.new"
    [ ! -e "$work/agent.yaml" ] || cp -p "$work/agent.yaml" "$config"
  fi
  if [ "$status" -ne 0 ] && [ -n "$installed" ]; then uninstall > /dev/null 2>&1; fi
  [ -z "$work" ] || rm -rf "$work"
  exit "$status"
}

# Keeps existing state: it contains the key, which is the identity of the node.
uninstall() {
  if [ "$installed" = deb ]; then
    if [ -n "$had_state" ]; then dpkg --remove rollcall-agent; else dpkg --purge rollcall-agent; fi
    return
  fi
  [ ! -e "$work/tree/install.sh" ] || sh "$work/tree/install.sh" --prefix "$root/usr/local" --uninstall
  rm -rf "$root/usr/local/lib/rollcall" "$root/usr/local/share/doc/rollcall" "$root/usr/local/bin/rollcall"
  rm -f "$root/etc/systemd/system/rollcall-agent.service" "$root/etc/systemd/system/rollcall-keeper.service"
  [ -n "$had_config" ] || rm -f "$config"
  rmdir "$root/etc/rollcall"
  if [ -z "$had_state" ]; then
    rm -rf "$state"
    userdel rollcall-agent
  fi
  systemctl daemon-reload
}

read_options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --insecure-plaintext) insecure=yes ;;
      -h | --help) usage; exit 0 ;;
      --server | --pin | --ca-fingerprint | --ca-file | --name)
        [ $# -ge 2 ] || die "$1 needs a value"
        case $1 in
          --server) server=${2%/} ;;
          --pin) pin=$2 ;;
          --ca-fingerprint) ca_fingerprint=$2 ;;
          --ca-file) ca_file=$2 ;;
          --name) name=$2 ;;
        esac
        shift
        ;;
      *) die "unknown option $1; --help lists the options" ;;
    esac
    shift
  done
  [ -n "$server" ] || die "--server is missing; run the line that \`rollcall token create\` prints"
  case $server$pin$ca_fingerprint in
    *[!]A-Za-z0-9.:/_=+\;[-]*) die "--server, --pin or --ca-fingerprint contains a character that none of them has" ;;
  esac
  case $pin in
    '' | sha256//*) ;;
    *) die "--pin is sha256// and the digest of the control plane's public key" ;;
  esac
  case $server in
    https://?*) scheme=https ;;
    http://?*) scheme=http; check_plaintext ;;
    *) die "--server is not a URL such as https://control-plane.example.org:7700" ;;
  esac
  [ -z "$ca_file" ] || { [ -f "$ca_file" ] && [ -r "$ca_file" ]; } || die "cannot read $ca_file"
}

check_plaintext() {
  host=${server#http://}
  host=${host%%/*}
  case $host in
    '[::1]' | '[::1]':* | localhost | localhost:*) return ;;
  esac
  case ${host%%:*} in
    *[!0-9.]* | '') ;;
    127.*) return ;;
  esac
  [ -n "$insecure" ] ||
    die "$server is not encrypted: use https://, or add --insecure-plaintext if the network encrypts all traffic"
}

check_machine() {
  [ "$(id -u)" = 0 ] || die "needs root: run the line in a root shell (sudo -s)"
  [ "$(uname -s)" = Linux ] || die "the agent is packaged for Linux, not for $(uname -s)"
  if [ ! -d "$root/run/systemd/system" ] || ! command -v systemctl > /dev/null; then
    die "this machine does not run systemd; install the agent by hand (rollcall agent --help)"
  fi
  for tool in curl sha256sum mktemp tar; do
    command -v "$tool" > /dev/null || die "needs $tool, which is not installed"
  done
  case $(uname -m) in
    x86_64 | amd64) platform=linux-x64 ;;
    aarch64 | arm64) platform=linux-arm64 ;;
    *) die "there are no packages for $(uname -m); they exist for x86_64 and aarch64" ;;
  esac
  [ -n "$name" ] || name=$(uname -n)
  case $name in
    [!A-Za-z0-9]* | *[!A-Za-z0-9._-]*) die "$name cannot be the id of a node; choose one with --name" ;;
  esac
}

find_program() {
  program=''
  for file in "$root/usr/bin/rollcall" "$root/usr/local/bin/rollcall"; do
    [ ! -x "$file" ] || program=$file
  done
}

configured_server() {
  [ -r "$config" ] || return 0
  sed -nE "s/^[[:space:]]*(Compute\.)?Server:[[:space:]]*[\"']?([^\"'[:space:]]+).*/\2/p" "$config" | tail -n 1
}

# Exits if this machine has joined a control plane before.
check_joined() {
  find_program
  earlier=$(configured_server)
  [ ! -e "$state" ] || had_state=yes
  [ ! -e "$config" ] || had_config=yes
  [ -n "$earlier" ] || return 0
  if [ "${earlier%/}" != "$server" ]; then
    die "this machine belongs to $earlier, not to $server; to move it, run this first: \
systemctl disable --now rollcall-agent; rm -r $state; sed -i '/Server:/d' $config"
  fi
  if [ -n "$program" ] && [ -s "$state/sentinel.json" ]; then
    say "this machine has already joined $server; nothing was changed"
    exit 0
  fi
}

# Takes the token out of the environment, because no other program needs it.
take_token() {
  token=${ROLLCALL_JOIN_TOKEN:-} given_file=${ROLLCALL_JOIN_TOKEN_FILE:-}
  unset ROLLCALL_JOIN_TOKEN ROLLCALL_JOIN_TOKEN_FILE
}

read_token() {
  if [ -n "$given_file" ]; then
    token=$(cat "$given_file" 2> /dev/null) || die "cannot read the join token from $given_file"
  fi
  case $token in
    '') die "set ROLLCALL_JOIN_TOKEN_FILE to a file with the join token, or ROLLCALL_JOIN_TOKEN to the token" ;;
    *[!A-Za-z0-9_-]*) die "the join token contains characters that no token has; check that it was copied completely" ;;
  esac
}

# Prints curl's settings. They are passed on standard input, because the list of processes shows arguments.
curl_settings() {
  printf 'header = "authorization: Bearer %s"\n' "$token"
  [ -z "$pin" ] || printf 'insecure\npinnedpubkey = "%s"\n' "$pin"
  [ -z "$ca_file" ] || printf 'cacert = "%s"\n' "$work/authority.pem"
}

fetch() { # file, path, parameter...
  to=$1 path=$2
  shift 2
  for parameter in "$@"; do
    shift
    set -- "$@" --data-urlencode "$parameter"
  done
  failed=0
  code=$(curl_settings | curl -q --config - --silent --show-error --proto "=$scheme" --connect-timeout 20 \
    --max-time 1200 --retry 5 --output "$to" --write-out '%{http_code}' --get "$@" "$server$path" \
    2> "$work/log") || failed=$?
  case $failed in
    0) ;;
    23) die "cannot write to $work: $(no_space)" ;;
    60 | 90) die "the certificate of $server is not the expected one: $(last_line "$work/log")" ;;
    *) die "cannot download from $server: $(last_line "$work/log")" ;;
  esac
  case $code in
    200) ;;
    404) die "$server does not serve packages: set Join.PackagesDir there" ;;
    *) die "$server refuses: $(reason_in "$to" "status $code")" ;;
  esac
}

no_space() {
  echo "is the disk full? TMPDIR names another directory"
}

reason_in() { # file with an error in JSON, default
  text=$(sed -nE 's/^\{"code":"[a-z_]*","message":"(([^"\\]|\\.)*)".*/\1/p' "$1" | sed 's/\\\(.\)/\1/g')
  echo "${text:-$2}"
}

choose_package() {
  fetch "$work/list" /v1/join/packages "platform=$platform" "node=$name"
  package=''
  if command -v apt-get > /dev/null && command -v dpkg > /dev/null; then
    package=$(grep '\.deb$' "$work/list") || true
  fi
  [ -n "$package" ] || package=$(grep '\.tar\.gz$' "$work/list") ||
    die "$server has no tarball for $platform, only a package for Debian: add it to Join.PackagesDir there"
  expected=${package%% *}
  package=${package##* }
}

download_package() {
  fetch "$work/$package" /v1/join/package "name=$package" "node=$name"
  found=$(sha256sum "$work/$package")
  found=${found%% *}
  [ "$found" = "$expected" ] ||
    die "$package was altered: its SHA-256 is $found, but SHA256SUMS of the control plane has $expected"
}

install_package() {
  case $package in
    *.deb)
      installed=deb
      DEBIAN_FRONTEND=noninteractive apt-get -qq --yes --no-install-recommends -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Options::=--force-confold install "$work/$package" > "$work/log" 2>&1 ||
        die "cannot install $package: $(last_line "$work/log")"
      ;;
    *)
      installed=tarball
      install_tarball > "$work/log" 2>&1 || die "cannot install $package: $(last_line "$work/log")"
      ;;
  esac
  find_program
}

# Rewrites a unit for a program below /usr/local.
install_unit() { # name
  sed 's|=/usr/bin/|=/usr/local/bin/|' "$work/tree/systemd/$1" > "$root/etc/systemd/system/$1"
}

# The steps are joined by &&, because `set -e` has no effect in a function whose result is checked.
install_tarball() {
  mkdir "$work/tree" &&
    tar -xzf "$work/$package" -C "$work/tree" --strip-components=1 &&
    sh "$work/tree/install.sh" --prefix "$root/usr/local" &&
    add_user &&
    mkdir -p "$root/etc/systemd/system" "$root/etc/rollcall" &&
    install_unit rollcall-agent.service &&
    install_unit rollcall-keeper.service &&
    { [ -e "$config" ] || cp "$work/tree/config/agent.yaml" "$config"; } &&
    systemctl daemon-reload
}

add_user() {
  id rollcall-agent > /dev/null 2>&1 ||
    useradd --system --user-group --no-create-home --home-dir /var/lib/rollcall-agent --shell /sbin/nologin \
      rollcall-agent
}

# Writes the agent's configuration, with the join token's file if there is one.
write_config() { # lines...
  {
    # Remove both spellings of each key, because the agent refuses a key that is set twice.
    if [ -e "$config" ]; then
      sed -E '/^ *(Compute\.)?(TLS\.)?(Server|JoinTokenFile|CAFingerprint|CAFile):/d; /^Compute\.Name:/d' "$config"
    fi
    printf '%s\n' "Compute.Server: $server" "$@"
  } > "$config.new" && own "$config.new" && mv "$config.new" "$config"
}

own() { # file; only root can change it, and only the agent can read it
  chown root:rollcall-agent "$1" && chmod 0640 "$1"
}

configure() {
  configured=yes
  [ ! -e "$config" ] || cp -p "$config" "$work/agent.yaml"
  set --
  [ "$name" = "$(uname -n)" ] || set -- "$@" "Compute.Name: $name"
  [ -z "$ca_fingerprint" ] || set -- "$@" "Compute.TLS.CAFingerprint: $ca_fingerprint"
  if [ -n "$ca_file" ]; then
    set -- "$@" "Compute.TLS.CAFile: ${authority#"$root"}"
    { cp "$work/authority.pem" "$authority" && own "$authority"; } 2> "$work/log" ||
      die "cannot write $authority: $(last_line "$work/log")"
  fi
  {
    (umask 077 && printf '%s\n' "$token" > "$token_file") && own "$token_file" &&
      write_config "$@" "Compute.JoinTokenFile: ${token_file#"$root"}"
  } 2> "$work/log" || die "cannot write to ${config%/*}: $(last_line "$work/log")"
  join
  # The node has its key now, and needs no token.
  rm -f "$token_file"
  write_config "$@" 2> /dev/null || true
}

# Starts the agent, and waits until the control plane has registered the node.
join() {
  rm -f "$state/sentinel.json"
  since=$(date +%s)
  { systemctl enable "$unit" && systemctl restart "$unit"; } > "$work/log" 2>&1 ||
    die "cannot start $unit: $(last_line "$work/log")"
  seconds=0
  while [ ! -s "$state/sentinel.json" ]; do
    why=$(journalctl --quiet --unit "$unit" --output cat --since "@$since" 2> /dev/null |
      sed -nE 's/.*"reason":"([A-Z_]+)","detail":"(([^"\\]|\\.)*)".*/\1: \2/p' | tail -n 1)
    case $why in
      JOIN_TOKEN_* | NODE_* | INVALID_*) die "$server does not admit this machine: $why" ;;
    esac
    [ "$seconds" -lt 90 ] || die "the agent could not join $server in 90 s: ${why:-see journalctl -u $unit}"
    sleep 1
    seconds=$((seconds + 1))
  done
}

main() {
  take_token
  read_options "$@"
  check_machine
  check_joined
  read_token
  trap finish EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  work=$(mktemp -d 2> /dev/null) || die "cannot create a directory in ${TMPDIR:-/tmp}: $(no_space)"
  [ -z "$ca_file" ] || cp "$ca_file" "$work/authority.pem" 2> /dev/null || die "cannot write to $work: $(no_space)"
  choose_package
  if [ -z "$program" ]; then
    say "installing $package"
    download_package
    install_package
  fi
  configure
  say "$name has joined $server; \`rollcall node list\` shows it"
}

# Everything else is in functions, so that a script that was not downloaded completely does nothing.
main "$@"
