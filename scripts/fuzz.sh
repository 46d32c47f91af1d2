#!/usr/bin/env bash
# Runs every fuzz test for FUZZTIME (a duration, or executions as in 1000x). Crashers land in the package's testdata/fuzz.
set -euo pipefail
cd "$(dirname "$0")/.."
time=${FUZZTIME:-1000x}
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for dir in $(find . -name '*_test.go' -not -path './.deps/*' -exec grep -l '^func Fuzz' {} + | xargs -n1 dirname | sort -u); do
	# one instrumented build a package, for all its fuzz tests
	scripts/go.sh test -c -fuzz=Fuzz -o "$bin/fuzz.test" "./$dir"
	for name in $(grep -hoE '^func Fuzz\w+' "$dir"/*_test.go | sed 's/^func //' | sort -u); do
		echo "$dir $name"
		(cd "$dir" && "$bin/fuzz.test" -test.run '^$' -test.fuzz "^$name\$" -test.fuzztime "$time" -test.fuzzcachedir "$bin/cache" -test.timeout 10m >"$bin/log" 2>&1) || { cat "$bin/log"; exit 1; }
	done
done
