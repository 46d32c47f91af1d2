// Command rd measures rate and PSNR-Y of the shipped models beside x264 and x265 on a folder of clips, and writes a
// table, BD-rates and a plot. `make rd` runs it; docs/BENCH.md keeps what it printed.
//
// Every encoder codes the same frames with one intra frame at the start. The others' rate is that of the elementary
// stream with its headers, without SEI; ours is the whole file, and the payload alone beside it. PSNR is the mean over
// frames, measured on decoded pictures.
//
// With -kodak it measures intra frames on pictures too, with -drift how long sequences hold their quality.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
	"github.com/nvcodec/nvcodec/metrics"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/pipeio"
	"github.com/nvcodec/nvcodec/yuv"
)

// A point is one encode of one clip.
type point struct {
	Setting string  `json:"setting"` // QP, CRF or quality
	Bytes   int64   `json:"bytes"`
	Payload int64   `json:"payload,omitempty"` // ours: without headers, records and footer
	PSNRY   float64 `json:"psnr_y"`
}

// A clip's curves, by encoder.
type clipResult struct {
	Name          string             `json:"name"`
	Width, Height int                `json:"-"`
	Size          string             `json:"size"`
	Frames        int                `json:"frames"`
	Curves        map[string][]point `json:"curves"`
}

func newResult(path string, f yuv.Format, frames int) *clipResult {
	return &clipResult{
		Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Width: f.W, Height: f.H,
		Size: fmt.Sprintf("%dx%d", f.W, f.H), Frames: frames, Curves: map[string][]point{},
	}
}

// settings are the command's, with what it opened by them.
type settings struct {
	only, out               string
	frames, side            int
	peers, fro              bool
	reset, intra, threshold int
	threads                 int
	qps                     []int
	nets                    []net
	backend                 inference.Backend
	cache                   *cache
}

// A net is a model under the name that tables give it: two files may hold models of one name.
type net struct {
	*inference.Model
	label string
}

func main() {
	log.SetFlags(0)
	s := &settings{}
	flag.StringVar(&s.only, "only", "", "take clips whose name holds one of these, separated by commas")
	names := flag.String("models", strings.Join(models.Names(), ","), "models to measure: names or .nvm files; empty: the peers alone, for the cache")
	qps := flag.String("qps", "0,21,42,63", "QPs of our models")
	flag.IntVar(&s.frames, "frames", 0, "frames of each clip (0: all)")
	flag.BoolVar(&s.fro, "to-and-fro", false, "play clips of fewer than -frames frames forwards, backwards and so on")
	flag.IntVar(&s.side, "side", 0, "scale clips whose smaller side is larger to this (0: none)")
	flag.IntVar(&s.reset, "reset-interval", -1, "reset interval of our streams (-1: the default)")
	flag.IntVar(&s.intra, "qp-i-offset", 0, "our intra frames' QP above the inter frames' (at most 63)")
	flag.IntVar(&s.threshold, "skip-threshold", -1, "skip threshold of our streams (-1: the model's)")
	flag.BoolVar(&s.peers, "peers", true, "measure x264 and x265 too")
	flag.IntVar(&s.threads, "threads", runtime.GOMAXPROCS(0), "threads")
	kept := flag.String("cache", "", "JSON file that keeps points from run to run, ours by the model's identity: not for comparing changes of the encoder")
	kodak := flag.String("kodak", "", "a folder of .png: intra frames too, beside libjpeg-turbo (cjpeg, djpeg) and x265")
	drift := flag.Int("drift", 0, "instead: how PSNR holds over this many frames, the clips to and fro, with the default reset interval and without resets")
	flag.StringVar(&s.out, "out", "", "write NAME.md, NAME.json and NAME.svg")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := s.run(ctx, flag.Args(), *names, *qps, *kept, *kodak, *drift); err != nil {
		log.Fatal("rd: ", err)
	}
}

func (s *settings) run(ctx context.Context, clips []string, names, qps, kept, kodak string, frames int) error {
	paths := s.list(clips)
	if len(paths) == 0 && kodak == "" {
		return errors.New("no clips: name files or folders of .mp4 and .mkv")
	}
	if err := s.open(names, qps); err != nil {
		return err
	}
	s.cache = loadCache(kept)
	if frames > 0 {
		return s.drift(ctx, paths, frames)
	}
	results, err := s.measure(ctx, paths)
	if err != nil {
		return err
	}
	table := ""
	if len(paths) > 0 {
		table = report(results)
	}
	if kodak != "" {
		pictures, err := s.pictures(ctx, kodak)
		if err != nil {
			return err
		}
		table += reportPictures(pictures)
	}
	fmt.Print(table)
	if s.out == "" {
		return nil
	}
	js, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	for ext, data := range map[string][]byte{".md": []byte(table), ".json": append(js, '\n'), ".svg": []byte(plot(results))} {
		if err := os.WriteFile(s.out+ext, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// list is the wanted clips among files and folders.
func (s *settings) list(clips []string) []string {
	var paths []string
	for _, c := range clips {
		in := []string{c}
		if st, err := os.Stat(c); err == nil && st.IsDir() {
			in, _ = filepath.Glob(filepath.Join(c, "*.m[kp][v4]"))
		}
		for _, p := range in {
			if matches(p, s.only) {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

func (s *settings) open(names, qps string) error {
	var err error
	if s.backend, err = inference.CPU("auto"); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, n := range strings.FieldsFunc(names, func(r rune) bool { return r == ',' }) {
		m, err := model(n)
		if err != nil {
			return err
		}
		label := m.Name
		if used[label] {
			label += " " + strings.TrimSuffix(filepath.Base(n), filepath.Ext(n))
		}
		used[label] = true
		s.nets = append(s.nets, net{m, label})
	}
	for q := range strings.SplitSeq(qps, ",") {
		v, err := strconv.Atoi(q)
		if err != nil {
			return fmt.Errorf("-qps %q: %w", qps, err)
		}
		s.qps = append(s.qps, v)
	}
	return nil
}

func (s *settings) measure(ctx context.Context, paths []string) ([]*clipResult, error) {
	var results []*clipResult
	for _, path := range paths {
		format, video, err := s.load(ctx, path)
		if err != nil {
			return nil, err
		}
		if s.fro && len(video) < s.frames {
			video, _ = longer(&format, video, s.frames)
		}
		r := newResult(path, format, len(video))
		if err := s.curves(ctx, r, format, video); err != nil {
			return nil, err
		}
		if s.peers {
			for _, enc := range peers {
				if err := s.peer(r, enc, func(crf int) (point, error) { return enc.encode(ctx, format, video, crf, s.threads) }); err != nil {
					return nil, err
				}
			}
		}
		results = append(results, r)
	}
	return results, nil
}

// curves measures our models.
func (s *settings) curves(ctx context.Context, r *clipResult, format yuv.Format, video []*yuv.Frame) error {
	for _, m := range s.nets {
		for _, qp := range s.qps {
			intra := min(qp+s.intra, 63)
			key := fmt.Sprintf("%s %s %d frames, %x qp %d/%d reset %d threshold %d", r.Name, r.Size, r.Frames, m.ID, qp, intra, s.reset, s.threshold)
			p, err := s.cache.get(key, func() (point, error) { return s.ours(ctx, m.Model, format, video, qp, intra, s.reset, nil) })
			if err != nil {
				return fmt.Errorf("%s, %s, qp %d: %w", r.Name, m.label, qp, err)
			}
			r.Curves[m.label] = append(r.Curves[m.label], p)
			log.Printf("%s %s qp %d: %d bytes (payload %d), %.2f dB", r.Name, m.label, qp, p.Bytes, p.Payload, p.PSNRY)
		}
	}
	return nil
}

// peer measures another encoder.
func (s *settings) peer(r *clipResult, enc peer, encode func(setting int) (point, error)) error {
	for _, x := range enc.settings {
		key := fmt.Sprintf("%s %s %d frames, %s %v crf %d", r.Name, r.Size, r.Frames, enc.name, enc.args, x)
		p, err := s.cache.get(key, func() (point, error) { return encode(x) })
		if err != nil {
			return fmt.Errorf("%s, %s, %d: %w", r.Name, enc.name, x, err)
		}
		r.Curves[enc.name] = append(r.Curves[enc.name], p)
	}
	return nil
}

func matches(path, only string) bool {
	for s := range strings.SplitSeq(only, ",") {
		if strings.Contains(filepath.Base(path), s) {
			return true
		}
	}
	return false
}

func model(name string) (*inference.Model, error) {
	if !strings.ContainsAny(name, "/.") {
		return models.ByName(name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return inference.Load(b)
}

// load decodes a clip into memory.
func (s *settings) load(ctx context.Context, path string) (yuv.Format, []*yuv.Frame, error) {
	src, err := pipeio.Open(ctx, path, pipeio.OpenOptions{})
	if err == nil && s.side > 0 && min(src.Format().W, src.Format().H) > s.side {
		src.Close()
		src, err = pipeio.Open(ctx, path, pipeio.OpenOptions{Resolution: s.side})
	}
	if err != nil {
		return yuv.Format{}, nil, err
	}
	defer src.Close()
	var video []*yuv.Frame
	for s.frames == 0 || len(video) < s.frames {
		f, err := src.Next(ctx)
		if errors.Is(err, io.EOF) && len(video) > 0 {
			break
		}
		if err != nil {
			return yuv.Format{}, nil, fmt.Errorf("%s: %w", path, err)
		}
		video = append(video, &yuv.Frame{Planes: *f.Planes.Clone(), PTS: f.PTS, Duration: f.Duration})
	}
	return src.Format(), video, nil
}

func meanY(a, b []*yuv.Frame) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("%d frames became %d", len(a), len(b))
	}
	var m metrics.Mean
	for i := range a {
		p, err := metrics.Compare(&a[i].Planes, &b[i].Planes)
		if err != nil {
			return 0, err
		}
		m.Add(p)
	}
	return m.Value().Y, nil
}
