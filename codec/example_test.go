package codec

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An annotator lays a stream out as the worked example of docs/FORMAT.md does: offset, bytes, field and value.
type annotator struct {
	b   []byte
	pos int
	out strings.Builder
}

const bytesALine = 16

// line prints the next n bytes with what they are.
func (a *annotator) line(n int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for first := true; first || n > 0; first = false {
		k := min(n, bytesALine)
		hexed := fmt.Sprintf("% x", a.b[a.pos:a.pos+k])
		fmt.Fprintf(&a.out, "%s\n", strings.TrimRight(fmt.Sprintf("%4d  %-47s  %s", a.pos, hexed, text), " "))
		a.pos, n, text = a.pos+k, n-k, ""
	}
}

func (a *annotator) title(format string, args ...any) {
	fmt.Fprintf(&a.out, "      -- %s\n", fmt.Sprintf(format, args...))
}

// varint prints a number and returns it.
func (a *annotator) varint(name string) int {
	v, n, err := parseVarint(a.b[a.pos:])
	if err != nil {
		panic(err)
	}
	a.line(n, "%s %d", name, v)
	return int(v)
}

func (a *annotator) signed(name string) {
	f := &fields{b: a.b[a.pos:]}
	v := f.signed(name)
	a.line(f.pos, "%s %d", name, v)
}

func (a *annotator) u8(name string) int {
	v := int(a.b[a.pos])
	a.line(1, "%s %d", name, v)
	return v
}

func (a *annotator) header() {
	a.title("header")
	a.line(4, `magic "NVC" 1a`)
	a.u8("version")
	a.u8("header_len")
	a.line(1, "profile 1: nvc-int-1")
	a.line(32, "model_id")
	a.line(1, "pixel_format 0: 8-bit 4:2:0")
	flags := a.b[a.pos]
	a.line(1, "header_flags: rotation %d, frame rate %d, sample aspect %d, colour %d, QP pattern %d",
		flags&3, flags>>2&3, flags>>4&1, flags>>5&1, flags>>6)
	a.varint("width")
	a.varint("height")
	a.varint("time_base numerator")
	a.varint("time_base denominator")
	a.line(4, "header_crc")
}

func (a *annotator) chunk() {
	h, err := parseChunkHeader(a.b[a.pos:], int64(a.pos))
	if err != nil {
		panic(err)
	}
	a.title("chunk")
	a.line(1, "chunk_type %s", quoteType(h.typ))
	a.varint("chunk_len")
	a.line(1, "chunk_check")
	switch end := a.pos + h.len; h.typ {
	case chunkGOP:
		a.line(4, "sync")
		a.varint("frame_number")
		a.signed("pts")
		a.u8("qp_i")
		a.u8("qp_p")
		a.u8("threshold")
		for a.pos < end {
			a.record()
		}
	case chunkMetadata:
		for a.pos < end {
			n := a.varint("key_len")
			a.line(n, "key %q", a.b[a.pos:a.pos+n])
			n = a.varint("value_len")
			a.line(n, "value %q", a.b[a.pos:a.pos+n])
		}
	case chunkFooter:
		a.varint("frame_count")
		a.varint("duration")
		for n := a.varint("index_count"); n > 0; n-- {
			a.varint("gop_offset")
			a.varint("gop_frame")
			a.signed("gop_pts")
		}
		a.line(4, "footer_len %d", h.total())
	default:
		panic(fmt.Sprintf("chunk type %q", h.typ))
	}
	a.line(4, "chunk_crc")
}

func (a *annotator) record() {
	flags := a.b[a.pos]
	a.title("record")
	a.line(1, "record_flags: %v%s", FrameType(flags&recordType), map[bool]string{true: ", last in its chunk"}[flags&recordLast != 0])
	n := a.varint("payload_len")
	if flags&^(recordType|recordLast) != 0 {
		panic("a flag that the example does not use")
	}
	if flags&recordLast != 0 {
		a.line(2, "hash_high")
	}
	a.line(n, "payload")
}

func annotate(stream []byte) string {
	a := &annotator{b: stream}
	a.header()
	for a.pos < len(stream) {
		a.chunk()
	}
	return a.out.String()
}

const (
	formatDoc    = "../docs/FORMAT.md"
	exampleStart = "<!-- the vector worked-example; written by go test ./codec -run TestVectors -update -->\n```\n"
	exampleEnd   = "```\n<!-- end of the vector -->"
)

// example cuts the worked example out of docs/FORMAT.md.
func example(t *testing.T) (before, text, after string) {
	doc, err := os.ReadFile(formatDoc)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), exampleStart)
	text, after, ok2 := strings.Cut(rest, exampleEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no worked example", formatDoc)
	}
	return before, text, after
}

func updateExample(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join(vectorsDir, "worked-example.nvc"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, after := example(t)
	if err := os.WriteFile(formatDoc, []byte(before+exampleStart+annotate(stream)+exampleEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The worked example of docs/FORMAT.md is the vector of that name: its bytes, and what each is said to be.
func TestWorkedExample(t *testing.T) {
	stream, err := os.ReadFile(filepath.Join(vectorsDir, "worked-example.nvc"))
	if err != nil {
		t.Skip(err)
	}
	_, text, _ := example(t)
	if want := annotate(stream); text != want {
		t.Errorf("docs/FORMAT.md has\n%swant\n%s", text, want)
	}
	var got []byte
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "      --") {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(line[6:min(len(line), 6+47)], " ", ""))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		got = append(got, b...)
	}
	if !bytes.Equal(got, stream) {
		t.Error("the example's bytes are not the vector's")
	}
}
