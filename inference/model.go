package inference

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nvcodec/nvcodec/inference/safetensors"
)

// Version is the version of the model file and Profile the rules of arithmetic that this package computes by.
const (
	Version = 1
	Profile = "nvc-int-1"
)

// A Model is a network as data: integer tensors and graphs over them. It does not change once it is opened.
type Model struct {
	ID      [32]byte // see Identity
	Version int
	Profile string
	Name    string            // "nvc1-base"
	Meta    map[string]string // the other metadata: threshold, licence, provenance, command …
	Tensors map[string]*Tensor
	Graphs  map[string]*Graph

	prepared layers
}

// reserved are the metadata keys that have a field of Model.
var reserved = []string{"format", "profile", "name", "graphs"}

// A ModelError reports a model that is broken or that breaks docs/MODEL.md.
type ModelError struct {
	Field string // metadata key, tensor, or graph/node
	Err   error
}

func (e *ModelError) Error() string { return fmt.Sprintf("inference: model: %s: %v", e.Field, e.Err) }
func (e *ModelError) Unwrap() error { return e.Err }

// An UnsupportedError reports a model that may be valid but that this version cannot run.
type UnsupportedError struct {
	Field string // "format", "profile" or graph/node
	Value string // the version, profile or operator
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("inference: model: %s %q is not supported", e.Field, e.Value)
}

// Load reads a model file, checks every tensor and graph, and proves the bounds that make its result independent of
// the order of summation; a model that cannot be proved is refused.
func Load(b []byte) (*Model, error) {
	f, err := safetensors.Parse(b)
	if err != nil {
		return nil, &ModelError{"file", err}
	}
	m := &Model{Profile: f.Metadata["profile"], Name: f.Metadata["name"], Meta: f.Metadata, Tensors: map[string]*Tensor{}}
	for _, key := range reserved {
		if _, ok := f.Metadata[key]; !ok {
			return nil, &ModelError{key, fmt.Errorf("metadata has no such key")}
		}
	}
	if f.Metadata["format"] != strconv.Itoa(Version) {
		return nil, &UnsupportedError{"format", f.Metadata["format"]}
	}
	m.Version = Version
	if m.Profile != Profile {
		return nil, &UnsupportedError{"profile", m.Profile}
	}
	text := f.Metadata["graphs"]
	if m.Graphs, err = ParseGraphs(text); err != nil {
		return nil, &ModelError{"graphs", err}
	}
	if FormatGraphs(m.Graphs) != text {
		return nil, &ModelError{"graphs", fmt.Errorf("not in canonical form")}
	}
	for _, key := range reserved {
		delete(m.Meta, key)
	}
	for _, st := range f.Tensors {
		t := &Tensor{Name: st.Name, Type: st.Type, Shape: st.Shape}
		if !isName(t.Name) {
			return nil, &ModelError{"tensor", fmt.Errorf("name %.80q is not allowed", t.Name)}
		}
		if err := t.decode(st.Data); err != nil {
			return nil, &ModelError{t.Name, err}
		}
		m.Tensors[t.Name] = t
	}
	if _, err := m.Prove(); err != nil {
		return nil, err
	}
	m.ID = Identity(m)
	return m, nil
}

// Marshal writes a model file: the same model gives the same bytes. It refuses what Load would refuse and sets m.ID.
func Marshal(m *Model) ([]byte, error) {
	if m.Version != Version {
		return nil, &UnsupportedError{"format", strconv.Itoa(m.Version)}
	}
	if m.Profile != Profile {
		return nil, &UnsupportedError{"profile", m.Profile}
	}
	f := &safetensors.File{Metadata: map[string]string{
		"format": strconv.Itoa(m.Version), "profile": m.Profile, "name": m.Name, "graphs": FormatGraphs(m.Graphs),
	}}
	for key, value := range m.Meta {
		if slices.Contains(reserved, key) {
			return nil, &ModelError{key, fmt.Errorf("metadata key has a field of its own")}
		}
		f.Metadata[key] = value
	}
	if _, err := m.Prove(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Tensors)) {
		t := m.Tensors[name]
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Type: t.Type, Shape: t.Shape, Data: t.bytes()})
	}
	m.ID = Identity(m)
	return safetensors.Marshal(f)
}

// Identity returns the SHA-256 by which streams name a model. It covers what decides the decoded pictures (version,
// profile, canonical graph text, and every tensor's name, type, shape and bytes in name order), and neither the
// model's name nor provenance nor licence. Every string goes in behind its length as 64 bits, little-endian, so that
// no two models give the same bytes.
func Identity(m *Model) [32]byte {
	h := sha256.New()
	number := func(v int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(v))
		h.Write(b[:])
	}
	text := func(s string) { number(len(s)); h.Write([]byte(s)) }
	text(strconv.Itoa(m.Version))
	text(m.Profile)
	text(FormatGraphs(m.Graphs))
	number(len(m.Tensors))
	for _, name := range slices.Sorted(maps.Keys(m.Tensors)) {
		t := m.Tensors[name]
		text(name)
		text(t.Type)
		number(len(t.Shape))
		for _, d := range t.Shape {
			number(d)
		}
		data := t.bytes()
		number(len(data))
		h.Write(data)
	}
	return [32]byte(h.Sum(nil))
}
