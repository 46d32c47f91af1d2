//go:build !noffmpeg

package av

// #include "shim.h"
import "C"

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"github.com/asticode/go-astiav"
	"github.com/nvcodec/nvcodec/yuv"
)

// Demuxers that may open a file. Playlists and concatenations are not among them: a file must not make the program
// read others. Sound, pictures and text are, so that the error can say what the file is.
const formatWhitelist = "mov,matroska,webm,avi,flv,live_flv,mpegts,mpegtsraw,mpeg,mpegvideo,m4v,h264,hevc,vvc,av1,obu,ivf,vc1,h261,h263,dirac,cavsvideo," +
	"asf,ogg,rm,mxf,mxf_opatom,gxf,gif,apng,nut,dv,wtv,yuv4mpegpipe,mjpeg,mjpeg_2000,swf,nsv,nuv,film_cpk,bink,smk,ea,roq,fli,amv,mtv,r3d,pva,vivo,ifv,evc," +
	"wav,w64,aiff,au,mp3,aac,ac3,eac3,dts,flac,ape,wv,tta,amr,caf,loas," +
	"tty,srt,ass,webvtt,image2,png_pipe,jpeg_pipe,jpegls_pipe,jpegxl_pipe,webp_pipe,bmp_pipe,tiff_pipe,ppm_pipe,pgm_pipe,pam_pipe,exr_pipe,j2k_pipe,svg_pipe,psd_pipe,ico"

// A Stream is what the container says of one of its streams.
type Stream struct {
	Index     int
	Kind      string // video, audio, subtitle, data, attachment
	Codec     string
	Attached  bool   // a cover picture, not a video
	Name      string // of an attached file
	Alpha     bool   // the container says that there is alpha beside the video (VP8 and VP9 in Matroska)
	W, H      int
	TimeBase  yuv.Rational
	FrameRate yuv.Rational // 0/1 unknown
	SAR       yuv.Rational
	Colour    yuv.Colour
	Frames    int64 // 0 unknown
	Start     int64 // NoPTS unknown
	Rotation  int   // clockwise degrees for display, after Flip
	Flip      bool  // mirror left and right before turning
	Skewed    bool  // the container asks for another transformation than quarter turns and mirrors; Rotation is the nearest
	st        *astiav.Stream
}

// An Input is an open container.
type Input struct {
	fc      *astiav.FormatContext
	log     *logger
	intr    *interrupter
	streams []Stream
}

// OpenInput opens a "file:" or "pipe:" address and reads far enough to know the streams.
func OpenInput(ctx context.Context, url string) (*Input, error) {
	in := &Input{fc: astiav.AllocFormatContext(), log: newLogger(), intr: &interrupter{c: C.nvc_intr_new()}}
	live[kindInput].Add(1)
	C.nvc_intr_attach(in.intr.c, formatPtr(in.fc))
	C.nvc_log_attach_format(in.log.c, formatPtr(in.fc))
	err := in.open(ctx, url)
	if err != nil && ctx.Err() == nil {
		err = in.log.explain(err)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

func (in *Input) open(ctx context.Context, url string) error {
	d, err := dict(map[string]string{"protocol_whitelist": "file,pipe", "format_whitelist": formatWhitelist})
	if err != nil {
		return err
	}
	defer d.Free()
	if err := in.intr.during(ctx, func() error { return in.fc.OpenInput(url, nil, d) }); err != nil {
		in.fc = nil // libav freed it
		return err
	}
	if err := in.intr.during(ctx, func() error { return in.fc.FindStreamInfo(nil) }); err != nil {
		return err
	}
	for i, st := range in.fc.Streams() {
		in.streams = append(in.streams, in.describe(i, st))
	}
	return nil
}

func (in *Input) describe(i int, st *astiav.Stream) Stream {
	cp := st.CodecParameters()
	s := Stream{
		Index: i, st: st,
		Codec:    cp.CodecID().Name(),
		Attached: C.nvc_stream_attached(formatPtr(in.fc), C.int(i)) != 0,
		W:        cp.Width(), H: cp.Height(),
		TimeBase:  rational(st.TimeBase()),
		FrameRate: rational(in.fc.GuessFrameRate(st, nil)),
		SAR:       rational(in.fc.GuessSampleAspectRatio(st, nil)),
		Colour: yuv.Colour{
			Range: uint8(cp.ColorRange()), Primaries: uint8(cp.ColorPrimaries()),
			Transfer: uint8(cp.ColorTransferCharacteristic()), Matrix: uint8(cp.ColorSpace()), ChromaLoc: uint8(cp.ChromaLocation()),
		},
		Frames: st.NbFrames(), Start: st.StartTime(),
	}
	if t := uint32(cp.CodecTag()); s.Codec == "none" && t != 0 {
		s.Codec = strings.Trim(string([]byte{byte(t), byte(t >> 8), byte(t >> 16), byte(t >> 24)}), "\x00 ")
	}
	s.Name = tag(st, "filename")
	switch cp.MediaType() {
	case astiav.MediaTypeVideo:
		s.Kind = "video"
		s.Alpha = tag(st, "alpha_mode") == "1"
		if m, ok := displayMatrix(st); ok {
			s.Rotation, s.Flip, s.Skewed = orientation(m)
		}
	case astiav.MediaTypeAudio:
		s.Kind = "audio"
	case astiav.MediaTypeSubtitle:
		s.Kind = "subtitle"
	case astiav.MediaTypeAttachment:
		s.Kind = "attachment"
	default:
		s.Kind = "data"
	}
	return s
}

// tag of a stream's metadata, "" if absent.
func tag(st *astiav.Stream, key string) string {
	if d := st.Metadata(); d != nil {
		if e := d.Get(key, nil, astiav.NewDictionaryFlags()); e != nil {
			return e.Value()
		}
	}
	return ""
}

// orientation reads a display matrix, which takes a sample at (x, y) to (a·x + c·y, b·x + d·y), y downward. A
// mirrored one is a mirror of left and right and then a turn; what is no quarter turn goes to the nearest.
func orientation(m [9]int32) (clockwise int, flip, skewed bool) {
	a, b, c, d := int64(m[0]), int64(m[1]), int64(m[3]), int64(m[4])
	if a*d-b*c < 0 { // turn·mirror: undoing the mirror negates the first column
		flip, a, b = true, -a, -b
	}
	switch abs := func(v int64) int64 { return max(v, -v) }; {
	case a == 0 && b == 0:
		return 0, flip, c != 0 || d != 0
	case abs(a) >= abs(b):
		if a < 0 {
			clockwise = 180
		}
		skewed = abs(b) > abs(a)/64
	default:
		clockwise = 90
		if b < 0 {
			clockwise = 270
		}
		skewed = abs(a) > abs(b)/64
	}
	return clockwise, flip, skewed
}

// rotationMatrix is the display matrix that asks for clockwise quarter turns.
func rotationMatrix(clockwise int) []byte {
	one := int32(1 << 16)
	m := [9]int32{0: one, 4: one, 8: 1 << 30}
	switch clockwise {
	case 90:
		m[0], m[1], m[3], m[4] = 0, one, -one, 0
	case 180:
		m[0], m[4] = -one, -one
	case 270:
		m[0], m[1], m[3], m[4] = 0, -one, one, 0
	}
	var b []byte
	for _, v := range m {
		b = binary.NativeEndian.AppendUint32(b, uint32(v))
	}
	return b
}

// Streams of the container, as they were when it was opened.
func (in *Input) Streams() []Stream { return in.streams }

// FormatName is libav's name of the container.
func (in *Input) FormatName() string { return in.fc.InputFormat().Name() }

// Duration is how long the container says it is; ok is false if that is missing or only an estimate.
func (in *Input) Duration() (d time.Duration, ok bool) {
	if C.nvc_duration_stated(formatPtr(in.fc)) == 0 {
		return 0, false
	}
	for _, s := range in.streams {
		if s.st.Duration() == 1<<32-1 { // mp4's "unknown", which FFmpeg 5.1 takes for a number
			return 0, false
		}
	}
	return time.Duration(in.fc.Duration()) * time.Microsecond, true
}

// Start is the container's first time, in which Duration begins.
func (in *Input) Start() time.Duration {
	if s := in.fc.StartTime(); s != NoPTS {
		return time.Duration(s) * time.Microsecond
	}
	return 0
}

// TimesJump tells that times in this kind of container may jump without meaning a pause.
func (in *Input) TimesJump() bool { return C.nvc_timestamps_jump(formatPtr(in.fc)) != 0 }

// Discard makes Read leave out a stream where the container can skip it.
func (in *Input) Discard(stream int) { C.nvc_stream_discard(formatPtr(in.fc), C.int(stream)) }

// Read reads the next packet of any stream, or returns io.EOF.
func (in *Input) Read(ctx context.Context, p *Packet) error {
	err := in.intr.during(ctx, func() error { return in.fc.ReadFrame(p.p) })
	if err = translate(err); err == ErrAgain {
		err = fmt.Errorf("av: read would block") // cannot be: files and pipes are waited for
	}
	return err
}

// ReadError tells that the file itself could not be read to its end (Read reports that as io.EOF).
func (in *Input) ReadError() error {
	if e := C.nvc_pb_error(formatPtr(in.fc)); e < 0 && astiav.Error(e) != astiav.ErrEof {
		return astiav.Error(e)
	}
	return nil
}

// Seek goes to the last key frame at or before a time of a stream, as far as the container can tell.
func (in *Input) Seek(ctx context.Context, stream int, ts int64) error {
	return in.intr.during(ctx, func() error {
		return in.fc.SeekFrame(stream, ts, astiav.NewSeekFlags(astiav.SeekFlagBackward))
	})
}

// Messages takes what libav has said about this file since the last call, up to the newest 64 lines.
func (in *Input) Messages() []Line { return in.log.take() }

// Close closes the container; its decoders must be closed before.
func (in *Input) Close() {
	if in.log == nil {
		return
	}
	if in.fc != nil {
		in.fc.CloseInput()
		in.fc.Free()
		in.fc = nil
	}
	in.intr.free()
	in.log.free()
	in.log = nil
	live[kindInput].Add(-1)
}

// A Packet is a piece of a stream in C memory.
type Packet struct{ p *astiav.Packet }

// NewPacket makes an empty packet; Free it.
func NewPacket() *Packet {
	live[kindPacket].Add(1)
	return &Packet{p: astiav.AllocPacket()}
}

// Free releases the packet.
func (p *Packet) Free() {
	if p.p != nil {
		p.p.Free()
		p.p = nil
		live[kindPacket].Add(-1)
	}
}

// Unref drops the content and keeps the packet for another.
func (p *Packet) Unref() { p.p.Unref() }

// Stream index in the container.
func (p *Packet) Stream() int { return p.p.StreamIndex() }

// PTS in the stream's time base, NoPTS if missing.
func (p *Packet) PTS() int64 { return p.p.Pts() }

// DTS in the stream's time base, NoPTS if missing.
func (p *Packet) DTS() int64 { return p.p.Dts() }

// Duration in the stream's time base, 0 if unknown.
func (p *Packet) Duration() int64 { return p.p.Duration() }

// Size in bytes.
func (p *Packet) Size() int { return p.p.Size() }

// Key tells that decoding can begin here.
func (p *Packet) Key() bool { return p.p.Flags().Has(astiav.PacketFlagKey) }

// Corrupt tells that the container knows the packet to be damaged.
func (p *Packet) Corrupt() bool { return p.p.Flags().Has(astiav.PacketFlagCorrupt) }

// Discarded tells that the packet is decoded but not shown (an edit list, pre-roll).
func (p *Packet) Discarded() bool { return p.p.Flags().Has(astiav.PacketFlagDiscard) }

// A Decoder decodes one stream.
type Decoder struct {
	cc  *astiav.CodecContext
	log *logger
}

// OpenDecoder opens the decoder of a stream; threads 0 means one for each processor. It uses the input only here and
// on Close.
func (in *Input) OpenDecoder(stream, threads int) (*Decoder, error) {
	s := in.streams[stream]
	codec := astiav.FindDecoder(s.st.CodecParameters().CodecID())
	if codec == nil {
		return nil, fmt.Errorf("this FFmpeg has no decoder for %s", s.Codec)
	}
	d := &Decoder{cc: astiav.AllocCodecContext(codec), log: newLogger()}
	live[kindDecoder].Add(1)
	err := func() error {
		if err := s.st.CodecParameters().ToCodecContext(d.cc); err != nil {
			return err
		}
		C.nvc_log_attach_codec(d.log.c, codecPtr(d.cc))
		C.nvc_decoder_setup(codecPtr(d.cc), C.AVRational{num: C.int(s.TimeBase.Num), den: C.int(s.TimeBase.Den)})
		d.cc.SetThreadCount(threads)
		d.cc.SetThreadType(astiav.ThreadTypeFrame | astiav.ThreadTypeSlice)
		opts, err := dict(map[string]string{"max_pixels": fmt.Sprint(1 << 28)})
		if err != nil {
			return err
		}
		defer opts.Free()
		return d.cc.Open(codec, opts)
	}()
	if err != nil {
		err = fmt.Errorf("decoder %s: %w", codec.Name(), d.log.explain(err))
		d.Close()
		return nil, err
	}
	return d, nil
}

// Send gives the decoder a packet, or nil after the last. Receive must have returned ErrAgain before.
func (d *Decoder) Send(p *Packet) error {
	if p == nil {
		return translate(d.cc.SendPacket(nil))
	}
	return translate(d.cc.SendPacket(p.p))
}

// Receive gives the next picture in the order of display, ErrAgain or io.EOF.
func (d *Decoder) Receive(f *Frame) error { return translate(d.cc.ReceiveFrame(f.f)) }

// Messages is Input.Messages for the decoder.
func (d *Decoder) Messages() []Line { return d.log.take() }

// Close frees the decoder.
func (d *Decoder) Close() {
	if d.cc == nil {
		return
	}
	d.cc.Free()
	d.cc = nil
	d.log.free()
	live[kindDecoder].Add(-1)
}

const extensions = " .mp4 .m4v .mov .qt .3gp .3g2 .mkv .webm .avi .divx .flv .f4v .ts .m2ts .mts .mpg .mpeg .vob .m2v .mod .tod " +
	".h264 .264 .avc .h265 .265 .hevc .obu .av1 .ivf .vc1 .asf .wmv .ogv .ogg .rm .rmvb .mxf .gxf .gif .apng .nut .dv .wtv .mjpeg .mjpg "

// Readable tells whether a lower-case extension is one that video files have.
func Readable(ext string) bool { return len(ext) > 1 && strings.Contains(extensions, " "+ext+" ") }
