package pipeio

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
)

// A notebook collects the notes of all stages of one file, which may run in different goroutines.
type notebook struct {
	file   string
	strict bool
	log    *slog.Logger // for what FFmpeg says; nil: nowhere
	mu     sync.Mutex
	list   []Note
}

// add records a note, once for each key and text. Under strict, a note of loss comes back as the error it is.
func (b *notebook) add(n Note) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.list {
		if o == n {
			return nil
		}
	}
	b.list = append(b.list, n)
	if b.strict && n.Loss {
		return &LossError{File: b.file, Note: n}
	}
	return nil
}

func (b *notebook) all() []Note {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Note(nil), b.list...)
}

// plural gives "1 picture" or "3 pictures".
func plural(n int64, what string) string {
	s := strconv.FormatInt(n, 10) + " " + what
	if n != 1 && !strings.HasSuffix(what, "s") {
		s += "s"
	}
	return s
}
