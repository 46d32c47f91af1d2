//go:build !noffmpeg

package av

/*
#cgo pkg-config: libavutil libavcodec libavformat libavfilter
#include "shim.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// ErrAgain: a decoder, graph or encoder wants input before it gives output.
var ErrAgain = errors.New("av: needs more input")

// NoPTS is libav's mark for a missing time.
const NoPTS = -1 << 63

func init() { C.nvc_log_install() }

// Versions names the libraries that the program runs with.
func Versions() string {
	v := func(n C.uint) string { return fmt.Sprintf("%d.%d.%d", n>>16, n>>8&255, n&255) }
	return "libavcodec " + v(C.avcodec_version()) + ", libavformat " + v(C.avformat_version()) + ", libavfilter " + v(C.avfilter_version())
}

var live [kinds]atomic.Int64

const (
	kindInput = iota
	kindDecoder
	kindGraph
	kindWriter
	kindPacket
	kindFrame
	kindLog
	kinds
)

// Live counts the objects that are open, by kind: for tests of leaks.
func Live() map[string]int64 {
	m := map[string]int64{}
	for i, name := range []string{"input", "decoder", "graph", "writer", "packet", "frame", "log"} {
		if n := live[i].Load(); n != 0 {
			m[name] = n
		}
	}
	return m
}

// pointer reads the C pointer that every astiav object has in its field c.
func pointer(x any) unsafe.Pointer { return reflect.ValueOf(x).Elem().FieldByName("c").UnsafePointer() }

func formatPtr(f *astiav.FormatContext) *C.AVFormatContext { return (*C.AVFormatContext)(pointer(f)) }
func codecPtr(c *astiav.CodecContext) *C.AVCodecContext    { return (*C.AVCodecContext)(pointer(c)) }
func framePtr(f *astiav.Frame) *C.AVFrame                  { return (*C.AVFrame)(f.UnsafePointer()) }

func rational(r astiav.Rational) yuv.Rational {
	if r.Num() == 0 || r.Den() == 0 {
		return yuv.Rational{Num: 0, Den: 1}
	}
	return yuv.Rational{Num: int64(r.Num()), Den: int64(r.Den())}
}

func toRational(r yuv.Rational) astiav.Rational {
	if r.Den == 0 {
		return astiav.NewRational(0, 1)
	}
	return astiav.NewRational(int(r.Num), int(r.Den))
}

// translate gives libav's flow codes Go's names.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, astiav.ErrEagain):
		return ErrAgain
	case errors.Is(err, astiav.ErrEof):
		return io.EOF
	}
	return err
}

// IsDamage tells that an error is about the data, so that what follows may still decode.
func IsDamage(err error) bool {
	return errors.Is(err, astiav.ErrInvaliddata) || errors.Is(err, astiav.ErrUnknown) || errors.Is(err, astiav.ErrPatchwelcome)
}

// A logger holds what libav says about one file.
type logger struct {
	mu sync.Mutex
	c  *C.nvc_log
}

func newLogger() *logger {
	live[kindLog].Add(1)
	return &logger{c: C.nvc_log_new()}
}

// A Line is a message of libav; Error is false for warnings.
type Line struct {
	Text  string
	Error bool
}

func (l *logger) take() (lines []Line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c == nil {
		return nil
	}
	var b [512]C.char
	var level C.int
	for C.nvc_log_take(l.c, &b[0], C.int(len(b)), &level) != 0 {
		lines = append(lines, Line{C.GoString(&b[0]), level <= 16})
	}
	return lines
}

// explain adds the last error message to err, unless it says the same.
func (l *logger) explain(err error) error {
	var last string
	for _, line := range l.take() {
		if line.Error || last == "" {
			last = line.Text
		}
	}
	if last == "" || strings.Contains(last, err.Error()) {
		if last != "" {
			return errors.New(last)
		}
		return err
	}
	return fmt.Errorf("%s (%w)", strings.TrimSuffix(last, "."), err)
}

func (l *logger) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.c != nil {
		C.nvc_log_free(l.c)
		l.c = nil
		live[kindLog].Add(-1)
	}
}

// An interrupter ends libav's waiting when a context does.
type interrupter struct {
	mu sync.Mutex
	c  *C.nvc_intr
}

func (i *interrupter) set() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.c != nil {
		C.nvc_intr_set(i.c)
	}
}

func (i *interrupter) free() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.c != nil {
		C.nvc_intr_free(i.c)
		i.c = nil
	}
}

// during runs f, which ends early if ctx does.
func (i *interrupter) during(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, i.set)
		defer stop()
	}
	err := f()
	if e := ctx.Err(); e != nil && err != nil {
		return e
	}
	return err
}

// dict makes a dictionary, whose errors can only be of memory.
func dict(kv map[string]string) (*astiav.Dictionary, error) {
	d := astiav.NewDictionary()
	for k, v := range kv {
		if err := d.Set(k, v, astiav.NewDictionaryFlags()); err != nil {
			d.Free()
			return nil, err
		}
	}
	return d, nil
}

// leftover is an option that nobody took.
func leftover(d *astiav.Dictionary) (string, bool) {
	if e := d.Get("", nil, astiav.NewDictionaryFlags(astiav.DictionaryFlagIgnoreSuffix)); e != nil {
		return e.Key(), true
	}
	return "", false
}
