// Command rd measures rate and PSNR-Y of the shipped models beside x264 and x265 on a folder of clips, and writes a
// table, BD-rates and a plot. `make rd` runs it; docs/BENCH.md keeps what it printed.
//
// Every encoder codes the same frames with one intra frame at the start. The others' rate is that of the elementary
// stream with its headers, without SEI; ours is the whole file, and the payload alone beside it. PSNR is the mean over
// frames, measured on decoded pictures.
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
	Setting string  `json:"setting"` // QP or CRF
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

func main() {
	log.SetFlags(0)
	only := flag.String("only", "", "take clips whose name holds one of these, separated by commas")
	names := flag.String("models", strings.Join(models.Names(), ","), "models to measure: names or .nvm files; empty: the peers alone, for the cache")
	qps := flag.String("qps", "0,21,42,63", "QPs of our models")
	frames := flag.Int("frames", 0, "frames of each clip (0: all)")
	reset := flag.Int("reset-interval", -1, "reset interval of our streams (-1: the default)")
	intra := flag.Int("qp-i-offset", 0, "our intra frames' QP above the inter frames' (at most 63)")
	threshold := flag.Int("skip-threshold", -1, "skip threshold of our streams (-1: the model's)")
	peersOn := flag.Bool("peers", true, "measure x264 and x265 too")
	threads := flag.Int("threads", runtime.GOMAXPROCS(0), "threads")
	cache := flag.String("cache", "", "JSON file that keeps the peers' results from run to run")
	out := flag.String("out", "", "write NAME.md, NAME.json and NAME.svg")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := measure(ctx, flag.Args(), *only, *names, *qps, *frames, *reset, *intra, *threshold, *threads, *peersOn, *cache, *out); err != nil {
		log.Fatal("rd: ", err)
	}
}

func measure(ctx context.Context, clips []string, only, names, qps string, limit, reset, intra, threshold, threads int, withPeers bool, cachePath, out string) error {
	var paths []string
	for _, c := range clips {
		if st, err := os.Stat(c); err == nil && st.IsDir() {
			in, _ := filepath.Glob(filepath.Join(c, "*.m[kp][v4]"))
			paths = append(paths, in...)
			continue
		}
		paths = append(paths, c)
	}
	if len(paths) == 0 {
		return errors.New("no clips: name files or folders of .mp4 and .mkv")
	}
	backend, err := inference.CPU("auto")
	if err != nil {
		return err
	}
	var nets []*inference.Model
	wanted := strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
	for _, n := range wanted {
		m, err := model(n)
		if err != nil {
			return err
		}
		nets = append(nets, m)
	}
	var list []int
	for _, q := range strings.Split(qps, ",") {
		v, err := strconv.Atoi(q)
		if err != nil {
			return fmt.Errorf("-qps %q: %w", qps, err)
		}
		list = append(list, v)
	}
	known := loadCache(cachePath)
	var results []*clipResult
	for _, path := range paths {
		if !matches(path, only) {
			continue
		}
		format, video, err := load(ctx, path, limit)
		if err != nil {
			return err
		}
		r := &clipResult{
			Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), Width: format.W, Height: format.H,
			Size: fmt.Sprintf("%dx%d", format.W, format.H), Frames: len(video), Curves: map[string][]point{},
		}
		for i, m := range nets {
			for _, qp := range list {
				p, err := ours(ctx, m, backend, format, video, qp, min(qp+intra, 63), reset, threshold, threads)
				if err != nil {
					return fmt.Errorf("%s, %s, qp %d: %w", path, m.Name, qp, err)
				}
				key := m.Name
				if i > 0 && nets[i-1].Name == m.Name {
					key += "-" + filepath.Base(wanted[i])
				}
				r.Curves[key] = append(r.Curves[key], p)
				log.Printf("%s %s qp %d: %d bytes (payload %d), %.2f dB", r.Name, key, qp, p.Bytes, p.Payload, p.PSNRY)
			}
		}
		if withPeers {
			for _, enc := range peers {
				for _, crf := range enc.crfs {
					p, err := known.get(r, enc, crf, func() (point, error) { return enc.encode(ctx, format, video, crf, threads) })
					if err != nil {
						return fmt.Errorf("%s, %s, crf %d: %w", path, enc.name, crf, err)
					}
					r.Curves[enc.name] = append(r.Curves[enc.name], p)
				}
			}
			known.save(cachePath)
		}
		results = append(results, r)
	}
	table := report(results)
	fmt.Print(table)
	if out == "" {
		return nil
	}
	js, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	for ext, data := range map[string][]byte{".md": []byte(table), ".json": append(js, '\n'), ".svg": []byte(plot(results))} {
		if err := os.WriteFile(out+ext, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func matches(path, only string) bool {
	for _, s := range strings.Split(only, ",") {
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
func load(ctx context.Context, path string, limit int) (yuv.Format, []*yuv.Frame, error) {
	src, err := pipeio.Open(ctx, path, pipeio.OpenOptions{})
	if err != nil {
		return yuv.Format{}, nil, err
	}
	defer src.Close()
	var video []*yuv.Frame
	for limit == 0 || len(video) < limit {
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
