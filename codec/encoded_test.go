package codec

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// encodedFile states what the encoder makes of each recipe today: "name sha256:…". A vector itself is a stream of the day
// its model was added and stays, for streams that people keep must decode however encoders improve.
const encodedFile = "../testdata/encoded.txt"

func readEncoded(t *testing.T) map[string]string {
	text, err := os.ReadFile(encodedFile)
	if err != nil {
		t.Fatalf("%v: run go test ./codec -run TestVectors -encoded", err)
	}
	sums := map[string]string{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, sum, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			t.Fatalf("%s: %q", encodedFile, lines.Text())
		}
		sums[name] = sum
	}
	return sums
}

func writeEncoded(t *testing.T, made [][2]string) {
	var text strings.Builder
	for _, m := range made {
		fmt.Fprintln(&text, m[0], m[1])
	}
	if err := os.WriteFile(encodedFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
