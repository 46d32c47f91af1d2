package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/nvcodec/nvcodec/batch"
	"github.com/nvcodec/nvcodec/codec"
	"github.com/nvcodec/nvcodec/models"
	"github.com/nvcodec/nvcodec/yuv"
)

// infoResult is what info prints with --json.
type infoResult struct {
	Input     string            `json:"input"`
	Version   int               `json:"version"`
	Profile   string            `json:"profile"`
	ModelID   string            `json:"model_id"`
	Model     string            `json:"model,omitempty"` // its name, when it is a shipped one
	Width     int               `json:"width"`
	Height    int               `json:"height"`
	SAR       string            `json:"sample_aspect,omitempty"`
	Rotation  int               `json:"rotation"`
	Colour    yuv.Colour        `json:"colour"`
	TimeBase  string            `json:"time_base"`
	FrameRate string            `json:"frame_rate,omitempty"`
	Frames    int64             `json:"frames"`
	GOPs      int64             `json:"gops"`
	Intra     int               `json:"intra_frames"`
	Resets    int               `json:"reset_frames"`
	Seconds   float64           `json:"seconds"`
	Bytes     int64             `json:"bytes"`
	Payload   int64             `json:"payload_bytes"`
	Kbps      float64           `json:"kbps"`
	Complete  bool              `json:"complete"` // a valid footer ends the stream
	Damage    []string          `json:"damage"`
	Coding    string            `json:"settings"`
	Metadata  map[string]string `json:"metadata"`
	Notes     []string          `json:"notes"` // what the encoder converted or left out
	List      []infoFrame       `json:"frame_list,omitempty"`
}

type infoFrame struct {
	Type      string `json:"type"`
	QP        int    `json:"qp"`
	PTS       int64  `json:"pts"`
	Bytes     int    `json:"bytes"`
	Threshold int    `json:"skip_threshold"`
	Lanes     int    `json:"lanes"`
}

func newInfo(e *env) *cobra.Command {
	var list bool
	cmd := &cobra.Command{
		Use:   "info IN",
		Short: "Print what a stream, or every stream of a folder, holds",
		Example: `  nvcodec info clip.nvc
  nvcodec info --json --frames clip.nvc | jq '.frame_list[].bytes'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runInfo(cmd.Context(), e, args[0], list)
		},
	}
	cmd.Flags().BoolVar(&list, "frames", false, "list every frame")
	return cmd
}

func runInfo(ctx context.Context, e *env, in string, list bool) error {
	st, err := os.Stat(in)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return infoFile(e, in, list)
	}
	plan, err := batch.List(in, isStream)
	if err != nil {
		return err
	}
	quiet := *e
	quiet.json, quiet.quiet = false, true // a listing needs no summary of jobs
	return runJobs(ctx, &quiet, plan, 1, 1, func(_ context.Context, j batch.Job, _ int) error {
		return infoFile(e, j.In, list)
	})
}

func infoFile(e *env, in string, list bool) error {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	info, err := codec.Scan(f, st.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	r := describe(in, info, list)
	if e.json {
		if perr := e.printJSON(r); perr != nil {
			return perr
		}
	} else {
		printing.Lock()
		printInfo(e.stdout, r)
		printing.Unlock()
	}
	if len(info.Damage) > 0 {
		return fmt.Errorf("%s: %w", in, info.Damage[0])
	}
	return nil
}

func ratio(r yuv.Rational, sep string) string {
	if r.Num == 0 || r.Den == 0 {
		return ""
	}
	return fmt.Sprintf("%d%s%d", r.Num, sep, r.Den)
}

func describe(in string, info *codec.Info, list bool) *infoResult {
	h := info.Header
	r := &infoResult{
		Input: in, Version: h.Version, Profile: h.Profile, ModelID: hex.EncodeToString(h.Model[:]),
		Width: h.W, Height: h.H, SAR: ratio(h.SAR, ":"), Rotation: h.Rotation, Colour: h.Colour,
		TimeBase: ratio(h.TimeBase, "/"), FrameRate: ratio(h.FrameRate, "/"),
		Frames: info.Frames, GOPs: info.GOPs, Bytes: info.Size, Complete: info.Complete,
		Metadata: map[string]string{}, Notes: []string{}, Damage: []string{},
		Coding: info.Settings(), Payload: info.PayloadBytes(), Seconds: info.Seconds(),
	}
	if r.Seconds > 0 {
		r.Kbps = float64(info.Size) * 8 / 1000 / r.Seconds
	}
	for _, d := range info.Damage {
		r.Damage = append(r.Damage, d.Error())
	}
	if m, err := models.ByID(h.Model); err == nil {
		r.Model = m.Name
	}
	for _, m := range info.Metadata {
		switch m.Key {
		case "note":
			r.Notes = append(r.Notes, m.Value)
		case codec.SettingsKey: // Coding holds the whole of it
		default:
			r.Metadata[m.Key] = m.Value
		}
	}
	for _, f := range info.Records {
		switch f.Type {
		case codec.Intra:
			r.Intra++
		case codec.Reset:
			r.Resets++
		}
		if list {
			r.List = append(r.List, infoFrame{f.Type.String(), f.QP, f.PTS, f.PayloadBytes, f.Threshold, f.Lanes})
		}
	}
	return r
}

func printInfo(w io.Writer, r *infoResult) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s "+format+"\n", append([]any{name}, args...)...)
	}
	fmt.Fprintf(w, "%s\n", r.Input)
	model := r.Model
	if model == "" {
		model = "not shipped with this build"
	}
	row("stream", "version %d, profile %s", r.Version, r.Profile)
	row("model", "%s (%s)", model, r.ModelID)
	row("picture", "%dx%d, sample aspect %s, rotation %d°", r.Width, r.Height, orUnknown(r.SAR), r.Rotation)
	row("colour", "range %d, primaries %d, transfer %d, matrix %d, chroma location %d", r.Colour.Range, r.Colour.Primaries, r.Colour.Transfer, r.Colour.Matrix, r.Colour.ChromaLoc)
	row("time", "%.3f s, base %s, frame rate %s", r.Seconds, r.TimeBase, orUnknown(r.FrameRate))
	row("frames", "%d in %d GOPs (%d intra, %d resets)", r.Frames, r.GOPs, r.Intra, r.Resets)
	row("size", "%d bytes, %d of them payload; %.1f kbit/s", r.Bytes, r.Payload, r.Kbps)
	row("settings", "%s", r.Coding)
	for _, k := range sortedKeys(r.Metadata) {
		row(k, "%s", r.Metadata[k])
	}
	for _, n := range r.Notes {
		row("note", "%s", n)
	}
	for _, d := range r.Damage {
		row("damage", "%s", d)
	}
	for i, f := range r.List {
		fmt.Fprintf(w, "  %6d %-5s qp %2d pts %-8d %7d bytes T %2d lanes %4d\n", i, f.Type, f.QP, f.PTS, f.Bytes, f.Threshold, f.Lanes)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
