package codec

import (
	"fmt"
	"unicode/utf8"
)

// maxMetadata bounds the bytes of all metadata chunks of a stream together.
const maxMetadata = 1 << 20

// SettingsKey is the entry that holds the encoder's settings as canonical text. Equal text, model and source give an
// equal stream.
const SettingsKey = "settings"

// An Entry is one line of a stream's metadata. Keys may repeat.
type Entry struct{ Key, Value string }

func (e Entry) check() error {
	if len(e.Key) < 1 || len(e.Key) > 255 {
		return fmt.Errorf("key of %d bytes, want 1..255", len(e.Key))
	}
	if !utf8.ValidString(e.Key) || !utf8.ValidString(e.Value) {
		return fmt.Errorf("entry %q is not UTF-8", e.Key)
	}
	return nil
}

func appendEntry(dst []byte, e Entry) []byte {
	dst = appendVarint(dst, uint64(len(e.Key)))
	dst = append(dst, e.Key...)
	dst = appendVarint(dst, uint64(len(e.Value)))
	return append(dst, e.Value...)
}

// parseMetadata reads a metadata chunk's payload: entries up to its end.
func parseMetadata(f *fields) []Entry {
	var entries []Entry
	for f.left() > 0 && f.err == nil {
		at := f.pos
		key := f.bytes("key", int(f.varint("key_len", 1, 255)))
		value := f.bytes("value", int(f.varint("value_len", 0, maxMetadata)))
		e := Entry{string(key), string(value)}
		if f.err == nil {
			if err := e.check(); err != nil {
				f.fail(at, "key", "%v", err)
			}
		}
		entries = append(entries, e)
	}
	if f.err != nil {
		return nil
	}
	return entries
}
