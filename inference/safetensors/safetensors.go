// Package safetensors reads and writes the container of model files and checkpoints: eight bytes of header length
// (little-endian), a JSON header, then the tensors' bytes. The reader is strict: every byte after the header belongs
// to exactly one tensor, and every count is checked against the bytes that are there before memory is taken for it.
package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits of a file.
const (
	MaxHeader  = 16 << 20 // bytes of JSON
	MaxTensors = 1 << 16
	MaxDims    = 8
	MaxName    = 255 // bytes
)

// A Tensor is one entry: Data holds its elements, little-endian, in row-major order.
type Tensor struct {
	Name  string
	Type  string // "I8", "U8", "I16", "U16", "I32", "U32", "I64", "U64", "F16", "BF16", "F32", "F64", "BOOL"
	Shape []int
	Data  []byte // a part of the parsed file
}

// A File is a parsed file. Tensors are in the order of their bytes.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// A FormatError reports bytes that are not a valid file.
type FormatError struct {
	Field string // "header_len", "header", "__metadata__" or a tensor's name
	Err   error
}

func (e *FormatError) Error() string { return fmt.Sprintf("safetensors: %s: %v", e.Field, e.Err) }
func (e *FormatError) Unwrap() error { return e.Err }

var elementBytes = map[string]int{
	"I8": 1, "U8": 1, "BOOL": 1, "I16": 2, "U16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4, "I64": 8, "U64": 8, "F64": 8,
}

// Parse reads a file. The tensors share b's memory.
func Parse(b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, &FormatError{"header_len", io.ErrUnexpectedEOF}
	}
	n := binary.LittleEndian.Uint64(b)
	if n > MaxHeader {
		return nil, &FormatError{"header_len", fmt.Errorf("%d bytes, at most %d", n, MaxHeader)}
	}
	if n > uint64(len(b)-8) {
		return nil, &FormatError{"header_len", io.ErrUnexpectedEOF}
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(b[8 : 8+n])), data: b[8+n:], file: &File{Metadata: map[string]string{}}}
	p.dec.UseNumber()
	if err := p.header(); err != nil {
		return nil, err
	}
	if err := p.cover(); err != nil {
		return nil, err
	}
	return p.file, nil
}

type parser struct {
	dec  *json.Decoder
	data []byte
	file *File
	ends []span
}

type span struct{ begin, end, index int }

// header reads the JSON object by tokens, so that repeated keys are seen.
func (p *parser) header() error {
	seen := map[string]bool{}
	err := p.object(func(key string) error {
		if seen[key] {
			return &FormatError{key, errors.New("occurs twice")}
		}
		seen[key] = true
		if key == "__metadata__" {
			if err := p.metadata(); err != nil {
				return &FormatError{key, err}
			}
			return nil
		}
		if len(seen) > MaxTensors {
			return &FormatError{"header", fmt.Errorf("more than %d tensors", MaxTensors)}
		}
		if err := p.tensor(key); err != nil {
			return &FormatError{key, err}
		}
		return nil
	})
	var format *FormatError
	if err != nil && !errors.As(err, &format) {
		return &FormatError{"header", err}
	}
	if err != nil {
		return err
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return &FormatError{"header", errors.New("more than one JSON value")}
	}
	return nil
}

// object calls member for each key of the object that comes next; member reads the value.
func (p *parser) object(member func(key string) error) error {
	if err := p.delim('{'); err != nil {
		return err
	}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return errors.New("a key is not a string")
		}
		if err := member(key); err != nil {
			return err
		}
	}
	return p.delim('}')
}

func (p *parser) delim(want json.Delim) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("%v where %v belongs", t, want)
	}
	return nil
}

func (p *parser) string() (string, error) {
	t, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", errors.New("not a string")
	}
	return s, nil
}

// counts reads an array of at most limit counts.
func (p *parser) counts(limit int) ([]int, error) {
	if err := p.delim('['); err != nil {
		return nil, err
	}
	var all []int
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		n, ok := t.(json.Number)
		v, err := n.Int64()
		if !ok || err != nil || v < 0 || int64(int(v)) != v {
			return nil, fmt.Errorf("%v is not a count", t)
		}
		if len(all) == limit {
			return nil, fmt.Errorf("more than %d counts", limit)
		}
		all = append(all, int(v))
	}
	return all, p.delim(']')
}

func (p *parser) metadata() error {
	return p.object(func(key string) error {
		if _, ok := p.file.Metadata[key]; ok {
			return fmt.Errorf("key %q occurs twice", key)
		}
		v, err := p.string()
		p.file.Metadata[key] = v
		return err
	})
}

func (p *parser) tensor(name string) error {
	if name == "" || len(name) > MaxName {
		return fmt.Errorf("name of %d bytes, want 1 to %d", len(name), MaxName)
	}
	t := Tensor{Name: name}
	var offsets []int
	seen := map[string]bool{}
	err := p.object(func(key string) (err error) {
		if seen[key] {
			return fmt.Errorf("%s occurs twice", key)
		}
		seen[key] = true
		switch key {
		case "dtype":
			t.Type, err = p.string()
		case "shape":
			t.Shape, err = p.counts(MaxDims)
		case "data_offsets":
			offsets, err = p.counts(2)
		default:
			return fmt.Errorf("unknown field %q", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(seen) != 3 || len(offsets) != 2 {
		return errors.New("wants dtype, shape and two data_offsets")
	}
	size, ok := elementBytes[t.Type]
	if !ok {
		return fmt.Errorf("unknown dtype %q", t.Type)
	}
	begin, end := offsets[0], offsets[1]
	if begin > end || end > len(p.data) {
		return fmt.Errorf("data_offsets %d to %d of %d bytes", begin, end, len(p.data))
	}
	for _, d := range t.Shape { // size stays at most the bytes there are, so it cannot overflow
		if d == 0 || size > (end-begin)/d {
			return fmt.Errorf("shape %v of %s does not fit %d bytes", t.Shape, t.Type, end-begin)
		}
		size *= d
	}
	if size != end-begin {
		return fmt.Errorf("shape %v of %s needs %d bytes, data_offsets give %d", t.Shape, t.Type, size, end-begin)
	}
	t.Data = p.data[begin:end:end]
	p.ends = append(p.ends, span{begin, end, len(p.file.Tensors)})
	p.file.Tensors = append(p.file.Tensors, t)
	return nil
}

// cover checks that the tensors tile the data, and puts them in that order.
func (p *parser) cover() error {
	slices.SortFunc(p.ends, func(a, b span) int { return a.begin - b.begin })
	sorted := make([]Tensor, len(p.ends))
	at := 0
	for i, s := range p.ends {
		sorted[i] = p.file.Tensors[s.index]
		if s.begin != at {
			return &FormatError{sorted[i].Name, fmt.Errorf("starts at byte %d of the data, want %d", s.begin, at)}
		}
		at = s.end
	}
	if at != len(p.data) {
		return &FormatError{"data", fmt.Errorf("%d bytes belong to no tensor", len(p.data)-at)}
	}
	p.file.Tensors = sorted
	return nil
}

// Marshal writes a file with the tensors in the given order. Equal files give equal bytes: the header's keys are
// sorted and spaces pad it so that the data starts at a multiple of eight bytes.
func Marshal(f *File) ([]byte, error) {
	header := map[string]any{}
	if len(f.Metadata) > 0 {
		header["__metadata__"] = f.Metadata
	}
	at := 0
	for _, t := range f.Tensors {
		size, ok := elementBytes[t.Type]
		if !ok {
			return nil, fmt.Errorf("safetensors: %s: unknown dtype %q", t.Name, t.Type)
		}
		if len(t.Shape) > MaxDims || t.Name == "" || len(t.Name) > MaxName || strings.HasPrefix(t.Name, "__") {
			return nil, fmt.Errorf("safetensors: tensor %q of shape %v is not allowed", t.Name, t.Shape)
		}
		shape := append([]int{}, t.Shape...)
		for _, d := range shape {
			size *= d
		}
		if size != len(t.Data) || size == 0 {
			return nil, fmt.Errorf("safetensors: %s: shape %v of %s with %d bytes", t.Name, t.Shape, t.Type, len(t.Data))
		}
		if _, ok := header[t.Name]; ok {
			return nil, fmt.Errorf("safetensors: %s occurs twice", t.Name)
		}
		header[t.Name] = map[string]any{"dtype": t.Type, "shape": shape, "data_offsets": []int{at, at + size}}
		at += size
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text) // sorts the keys of maps
	enc.SetEscapeHTML(false)
	if err := enc.Encode(header); err != nil {
		return nil, fmt.Errorf("safetensors: header: %w", err)
	}
	text.Truncate(text.Len() - 1) // Encode's newline
	for text.Len()%8 != 0 {
		text.WriteByte(' ')
	}
	if text.Len() > MaxHeader || len(f.Tensors) > MaxTensors {
		return nil, fmt.Errorf("safetensors: header of %d bytes for %d tensors is too large", text.Len(), len(f.Tensors))
	}
	b := make([]byte, 0, 8+text.Len()+at)
	b = binary.LittleEndian.AppendUint64(b, uint64(text.Len()))
	b = append(b, text.Bytes()...)
	for _, t := range f.Tensors {
		b = append(b, t.Data...)
	}
	return b, nil
}
