package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
)

// file joins a header and data as the container has them.
func file(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

func TestParse(t *testing.T) {
	b := file(`{"__metadata__":{"k":"v"},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[3,7]},"a":{"data_offsets":[0,3],"shape":[3],"dtype":"U8"},"s":{"dtype":"I8","shape":[],"data_offsets":[7,8]}}  `, 1, 2, 3, 4, 5, 6, 7, 8)
	f, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	want := []Tensor{{"a", "U8", []int{3}, []byte{1, 2, 3}}, {"b", "I16", []int{2, 1}, []byte{4, 5, 6, 7}}, {"s", "I8", nil, []byte{8}}}
	if !reflect.DeepEqual(f.Tensors, want) || f.Metadata["k"] != "v" || len(f.Metadata) != 1 {
		t.Errorf("got %+v, %v", f.Tensors, f.Metadata)
	}
}

func TestParseRefused(t *testing.T) {
	one := func(fields string) []byte { return file(`{"t":{`+fields+`}}`, 1, 2, 3, 4) }
	long := binary.LittleEndian.AppendUint64(nil, MaxHeader+1)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":               {nil, "header_len"},
		"seven bytes":         {make([]byte, 7), "header_len"},
		"header cut":          {file("{}")[:9], "header_len: unexpected EOF"},
		"header too long":     {append(long, make([]byte, 100)...), "header_len: 16777217 bytes"},
		"length of all ones":  {bytes.Repeat([]byte{255}, 20), "header_len"},
		"no object":           {file("[]"), "header"},
		"not JSON":            {file("{x}"), "header"},
		"object cut":          {file(`{"t":{"dtype":"U8"`), "EOF"},
		"two values":          {file("{}{}"), "more than one JSON value"},
		"tensor twice":        {file(`{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 1, 2), "t: occurs twice"},
		"metadata twice":      {file(`{"__metadata__":{},"__metadata__":{}}`), "occurs twice"},
		"metadata key twice":  {file(`{"__metadata__":{"a":"","a":""}}`), `key "a" occurs twice`},
		"metadata number":     {file(`{"__metadata__":{"a":1}}`), "not a string"},
		"no name":             {file(`{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "name of 0 bytes"},
		"long name":           {file(`{"`+strings.Repeat("n", 256)+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "name of 256 bytes"},
		"unknown field":       {one(`"dtype":"U8","shape":[4],"data_offsets":[0,4],"x":1`), `unknown field "x"`},
		"field twice":         {one(`"dtype":"U8","dtype":"U8","shape":[4],"data_offsets":[0,4]`), "dtype occurs twice"},
		"field missing":       {one(`"shape":[4],"data_offsets":[0,4]`), "wants dtype"},
		"one offset":          {one(`"dtype":"U8","shape":[4],"data_offsets":[4]`), "two data_offsets"},
		"three offsets":       {one(`"dtype":"U8","shape":[4],"data_offsets":[0,4,4]`), "more than 2 counts"},
		"nine dimensions":     {one(`"dtype":"U8","shape":[4,1,1,1,1,1,1,1,1],"data_offsets":[0,4]`), "more than 8 counts"},
		"unknown type":        {one(`"dtype":"I4","shape":[4],"data_offsets":[0,4]`), `unknown dtype "I4"`},
		"negative dimension":  {one(`"dtype":"U8","shape":[-4],"data_offsets":[0,4]`), "-4 is not a count"},
		"fraction":            {one(`"dtype":"U8","shape":[4.0],"data_offsets":[0,4]`), "4.0 is not a count"},
		"huge dimension":      {one(`"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,4]`), "is not a count"},
		"no elements":         {one(`"dtype":"U8","shape":[4,0],"data_offsets":[0,0]`), "does not fit 0 bytes"},
		"overflowing product": {one(fmt.Sprintf(`"dtype":"U8","shape":[%d,%d],"data_offsets":[0,4]`, math.MaxInt32, math.MaxInt32)), "does not fit"},
		"too small":           {one(`"dtype":"U8","shape":[3],"data_offsets":[0,4]`), "needs 3 bytes"},
		"half an element":     {one(`"dtype":"I32","shape":[1],"data_offsets":[0,3]`), "does not fit"},
		"beyond the data":     {one(`"dtype":"U8","shape":[5],"data_offsets":[0,5]`), "0 to 5 of 4 bytes"},
		"backwards":           {one(`"dtype":"U8","shape":[1],"data_offsets":[2,1]`), "2 to 1"},
		"gap in front":        {one(`"dtype":"U8","shape":[3],"data_offsets":[1,4]`), "starts at byte 1"},
		"bytes left":          {one(`"dtype":"U8","shape":[3],"data_offsets":[0,3]`), "1 bytes belong to no tensor"},
		"overlap":             {file(`{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 1, 2, 3, 4), "b: starts at byte 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestMarshal(t *testing.T) {
	f := &File{
		Metadata: map[string]string{"z": "<é&\n>", "a": ""},
		Tensors:  []Tensor{{"x", "U16", []int{1, 2}, []byte{1, 2, 3, 4}}, {"a", "I8", []int{1}, []byte{9}}},
	}
	b, err := Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if n := binary.LittleEndian.Uint64(b); n%8 != 0 {
		t.Errorf("data starts at byte %d", 8+n)
	}
	got, err := Parse(b)
	if err != nil || !reflect.DeepEqual(got, f) {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, bad := range map[string]Tensor{
		"length":   {"y", "I16", []int{3}, []byte{1, 2}},
		"type":     {"y", "I4", []int{2}, []byte{1, 2}},
		"empty":    {"y", "I8", []int{0}, nil},
		"twice":    {"x", "I8", []int{1}, []byte{1}},
		"reserved": {"__metadata__", "I8", []int{1}, []byte{1}},
	} {
		if _, err := Marshal(&File{Tensors: append(f.Tensors[:2:2], bad)}); err == nil {
			t.Errorf("%s: written", name)
		}
	}
}

// FuzzParse: what parses has tensors that tile the data, and is written and read back the same.
func FuzzParse(f *testing.F) {
	f.Add(file(`{"__metadata__":{"k":"v"},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[3,7]},"a":{"data_offsets":[0,3],"shape":[3],"dtype":"U8"}} `, 1, 2, 3, 4, 5, 6, 7))
	f.Add(file(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Parse(b)
		if err != nil {
			return
		}
		n := 8 + int(binary.LittleEndian.Uint64(b))
		for _, x := range got.Tensors {
			if !bytes.Equal(x.Data, b[n:][:len(x.Data)]) {
				t.Fatalf("%s does not follow the tensor before", x.Name)
			}
			n += len(x.Data)
		}
		if n != len(b) {
			t.Fatalf("tensors end at %d of %d bytes", n, len(b))
		}
		for _, x := range got.Tensors {
			if strings.HasPrefix(x.Name, "__") {
				return // a checkpoint may, we do not write such names
			}
		}
		again, err := Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if second, err := Parse(again); err != nil || !reflect.DeepEqual(second.Tensors, got.Tensors) {
			t.Fatalf("comes back as %+v, %v", second, err)
		}
	})
}
