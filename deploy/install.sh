#!/bin/sh
# Installs the executable of a release for this machine after verifying its checksum.
#
#   sh install.sh https://releases.example.com/flagkeep/0.2.0            # into /usr/local/bin
#   sh install.sh /mnt/releases/0.2.0 --bin-dir "$HOME/.local/bin"
#
# ADDRESS contains the files of `make release`: the executables and SHA256SUMS. Nothing else is changed.
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

usage="usage: install.sh ADDRESS [--bin-dir FOLDER]"
[ $# -gt 0 ] || fail "$usage"
from=${1%/}
bin_dir=/usr/local/bin
shift
while [ $# -gt 0 ]; do
  case $1 in
    --bin-dir)
      [ $# -gt 1 ] || fail "$usage"
      bin_dir=$2
      shift 2
      ;;
    *) fail "$usage" ;;
  esac
done

[ "$(uname -s)" = Linux ] || fail "Flagkeep runs on Linux; this is $(uname -s)."
case $(uname -m) in
  x86_64 | amd64) arch=x64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "no executable is available for $(uname -m)." ;;
esac
target=linux-$arch
if ls /lib/ld-musl-* >/dev/null 2>&1; then target=$target-musl; fi
command -v sha256sum >/dev/null || fail "sha256sum is not installed; it is required."

work=$(mktemp -d)
new=
trap 'rm -rf "$work"; [ -z "$new" ] || rm -f "$new"' EXIT
trap 'exit 1' HUP INT TERM

get() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL --retry 3 -o "$2" "$from/$1"
      elif command -v wget >/dev/null; then
        wget -q -O "$2" "$from/$1"
      else
        fail "neither curl nor wget is installed."
      fi
      ;;
    *) cp "$from/$1" "$2" ;;
  esac || fail "$from/$1 cannot be fetched."
}

get SHA256SUMS "$work/SHA256SUMS"
# The name ends with the target; the version precedes it.
name=$(sed -n "s/^[0-9a-f]\{64\}  \(flagkeep-[0-9A-Za-z.+-]*-$target\)\$/\1/p" "$work/SHA256SUMS" | head -n 1)
[ -n "$name" ] || fail "the release has no executable for $target."
get "$name" "$work/$name"
(cd "$work" && grep "  $name\$" SHA256SUMS | sha256sum -c >/dev/null 2>&1) ||
  fail "$name is not what SHA256SUMS says; nothing was installed."

mkdir -p "$bin_dir" || fail "$bin_dir cannot be created."
# Written next to the old one, then renamed: a running server continues, and the file is never incomplete.
new=$bin_dir/.flagkeep.$$
cp "$work/$name" "$new" || fail "$bin_dir cannot be written; try another --bin-dir, or as root."
chmod 0755 "$new"
"$new" version >/dev/null || fail "$name does not run on this machine; nothing was installed."
mv "$new" "$bin_dir/flagkeep"
new=
echo "$("$bin_dir/flagkeep" version | head -n 1) is in $bin_dir/flagkeep."
