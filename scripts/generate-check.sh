#!/usr/bin/env bash
# Fails if a generated file differs from what its generator writes now. The files are put back.
set -euo pipefail
cd "$(dirname "$0")/.."
keep=$(mktemp -d)
trap 'rm -rf "$keep"' EXIT
files=$(git ls-files | xargs grep -lE '^// Code generated .* DO NOT EDIT' 2>/dev/null || true)
for f in $files; do mkdir -p "$keep/$(dirname "$f")" && cp -p "$f" "$keep/$f"; done
go generate ./...
stale=()
for f in $files; do
	if ! cmp -s "$f" "$keep/$f"; then stale+=("$f"); fi
	cp -p "$keep/$f" "$f"
done
if [ ${#stale[@]} -gt 0 ]; then
	echo "not current, run make generate: ${stale[*]}" >&2
	exit 1
fi
