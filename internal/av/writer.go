//go:build !noffmpeg

package av

// #include "shim.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// WriterOptions describe an output with one video stream.
type WriterOptions struct {
	URL       string // "file:…"
	Container string // libav's name: mp4, matroska, mov
	Encoder   string // libav's name
	Options   map[string]string
	Format    yuv.Format  // Rotation goes into the container; see StoresRotation
	Pixels    PixelFormat // other than YUV420P: what Write takes (for tests of inputs)
	Full      bool        // prefer the encoder's yuvj420p (motion JPEG has no other way to say full range)
	Threads   int
}

// A Writer encodes pictures into a container.
type Writer struct {
	o      WriterOptions
	oc     *astiav.FormatContext
	pb     *astiav.IOContext
	cc     *astiav.CodecContext
	st     *astiav.Stream
	pkt    *astiav.Packet
	log    *logger
	format PixelFormat
	dur    map[int64]int64
}

// StoresRotation tells whether a container keeps a rotation in every supported version of FFmpeg.
func StoresRotation(container string) bool { return container == "mp4" || container == "mov" }

// EncoderFormats lists what an encoder takes; ok is false if there is no encoder of that name. An empty list means
// that it does not say.
func EncoderFormats(name string) (formats []PixelFormat, ok bool) {
	c := astiav.FindEncoderByName(name)
	if c == nil {
		return nil, false
	}
	for _, p := range c.PixelFormats() {
		formats = append(formats, PixelFormat(p))
	}
	return formats, true
}

// OpenWriter opens encoder and file and writes the header.
func OpenWriter(o WriterOptions) (*Writer, error) {
	w := &Writer{o: o, log: newLogger(), dur: map[int64]int64{}}
	live[kindWriter].Add(1)
	if err := w.open(); err != nil {
		err = w.log.explain(err)
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Writer) open() error {
	codec := astiav.FindEncoderByName(w.o.Encoder)
	if codec == nil {
		return fmt.Errorf("this FFmpeg has no encoder %q", w.o.Encoder)
	}
	formats, _ := EncoderFormats(w.o.Encoder)
	w.format = w.o.Pixels
	if w.format != YUV420P {
		if len(formats) > 0 && !slices.Contains(formats, w.format) {
			return fmt.Errorf("encoder %s does not take this pixel format", w.o.Encoder)
		}
	} else if jpeg := slices.Contains(formats, YUVJ420P); len(formats) > 0 && jpeg && (w.o.Full || !slices.Contains(formats, YUV420P)) {
		w.format = YUVJ420P
	} else if len(formats) > 0 && !slices.Contains(formats, YUV420P) {
		return fmt.Errorf("encoder %s takes no 8-bit 4:2:0 pictures", w.o.Encoder)
	}
	var err error
	if w.oc, err = astiav.AllocOutputFormatContext(nil, w.o.Container, w.o.URL); err != nil {
		return err
	}
	C.nvc_log_attach_format(w.log.c, formatPtr(w.oc))
	if w.cc = astiav.AllocCodecContext(codec); w.cc == nil {
		return errors.New("out of memory")
	}
	C.nvc_log_attach_codec(w.log.c, codecPtr(w.cc))
	f := w.o.Format
	w.cc.SetWidth(f.W)
	w.cc.SetHeight(f.H)
	w.cc.SetPixelFormat(astiav.PixelFormat(w.format))
	w.cc.SetTimeBase(toRational(f.TimeBase))
	if f.FrameRate.Num > 0 {
		w.cc.SetFramerate(toRational(f.FrameRate))
	}
	w.cc.SetSampleAspectRatio(toRational(f.SAR))
	w.cc.SetThreadCount(w.o.Threads)
	if w.oc.OutputFormat().Flags().Has(astiav.IOFormatFlagGlobalheader) {
		w.cc.SetFlags(w.cc.Flags().Add(astiav.CodecContextFlagGlobalHeader))
	}
	kv := map[string]string{
		"color_range": fmt.Sprint(f.Colour.Range), "color_primaries": fmt.Sprint(f.Colour.Primaries), "color_trc": fmt.Sprint(f.Colour.Transfer),
		"colorspace": fmt.Sprint(f.Colour.Matrix), "chroma_sample_location": fmt.Sprint(f.Colour.ChromaLoc),
	}
	maps.Copy(kv, w.o.Options)
	d, err := dict(kv)
	if err != nil {
		return err
	}
	defer d.Free()
	if err := w.cc.Open(codec, d); err != nil {
		return fmt.Errorf("encoder %s: %w", w.o.Encoder, err)
	}
	if w.st = w.oc.NewStream(nil); w.st == nil {
		return errors.New("out of memory")
	}
	if err := w.cc.ToCodecParameters(w.st.CodecParameters()); err != nil {
		return err
	}
	w.st.SetTimeBase(w.cc.TimeBase())
	w.st.SetSampleAspectRatio(toRational(f.SAR))
	if f.FrameRate.Num > 0 {
		w.st.SetAvgFrameRate(toRational(f.FrameRate))
	}
	if f.Rotation != 0 {
		if err := setDisplayMatrix(w.st, f.Rotation); err != nil {
			return err
		}
	}
	if w.pb, err = openOut(w.o.URL); err != nil {
		return err
	}
	w.oc.SetPb(w.pb)
	// what the encoder did not take may be the container's: movflags=+faststart
	if err := w.oc.WriteHeader(d); err != nil {
		return fmt.Errorf("%s container: %w", w.o.Container, err)
	}
	if k, ok := leftover(d); ok {
		return fmt.Errorf("neither the encoder %s nor the container %s has an option %q", w.o.Encoder, w.o.Container, k)
	}
	if w.pkt = astiav.AllocPacket(); w.pkt == nil {
		return errors.New("out of memory")
	}
	return nil
}

// PixelFormat of the pictures that Write takes.
func (w *Writer) PixelFormat() PixelFormat { return w.format }

// Write encodes a picture, tagged with its time and duration in the format's time base.
func (w *Writer) Write(ctx context.Context, f *Frame) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.dur[f.f.Pts()] = f.Props().Duration
	err := w.cc.SendFrame(f.f)
	if err == nil {
		err = w.drain(ctx)
	}
	return w.explain(err)
}

// Finish encodes what the encoder still holds and ends the file. Close follows.
func (w *Writer) Finish(ctx context.Context) error {
	err := w.cc.SendFrame(nil)
	if err == nil {
		err = w.drain(ctx)
	}
	if err == nil {
		err = w.oc.WriteTrailer()
	}
	if err == nil {
		pb := w.pb
		w.pb = nil
		err = pb.Close() // tells of a full disk
	}
	return w.explain(err)
}

func (w *Writer) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return w.log.explain(err)
}

// drain writes the packets that are ready. FFmpeg 5.1's encoders leave out durations, and without the last one mp4's
// edit list would hide the last picture, so each packet gets the duration of its picture.
func (w *Writer) drain(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		switch err := translate(w.cc.ReceivePacket(w.pkt)); err {
		case nil:
		case ErrAgain, io.EOF:
			return nil
		default:
			return err
		}
		if d, ok := w.dur[w.pkt.Pts()]; ok {
			w.pkt.SetDuration(d)
			delete(w.dur, w.pkt.Pts())
		}
		w.pkt.SetStreamIndex(w.st.Index())
		w.pkt.RescaleTs(w.cc.TimeBase(), w.st.TimeBase())
		err := w.oc.WriteInterleavedFrame(w.pkt)
		w.pkt.Unref()
		if err != nil {
			return err
		}
	}
}

// Close frees everything; without Finish the file stays incomplete.
func (w *Writer) Close() {
	if w.log == nil {
		return
	}
	if w.pkt != nil {
		w.pkt.Free()
	}
	if w.cc != nil {
		w.cc.Free()
	}
	if w.oc != nil {
		if w.pb != nil {
			w.pb.Close()
		}
		w.oc.Free()
	}
	w.log.free()
	w.log = nil
	live[kindWriter].Add(-1)
}

// Size of the pictures that Write takes.
func (w *Writer) Size() (width, height int) { return w.o.Format.W, w.o.Format.H }

// Tag gives a picture its time and duration, and the format's colours and aspect: newer FFmpegs believe the frames alone.
func (w *Writer) Tag(f *Frame, pts, duration int64) {
	f.Tag(pts, duration, w.o.Format.Colour, w.o.Format.SAR)
}
