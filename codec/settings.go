package codec

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/nvcodec/nvcodec/inference"
)

// EncoderOptions say how to encode. Begin with DefaultOptions: the zero value of a field is a setting too.
type EncoderOptions struct {
	Model   *inference.Model
	Backend inference.Backend
	Threads int // of the network and the motion search; below 1 as many as the machine has

	QPI, QPP      int  // 0..63, 63 best: of intra frames, and of inter frames before the model's pattern is taken off
	IntraPeriod   int  // frames of a GOP at most; 0 no limit
	ResetInterval int  // frames from one rebuilt memory to the next; 0 none after the first
	SceneCut      bool // a new scene begins a GOP
	Threshold     int  // 0..64: y symbols with a scale index below it are not coded; −1 the model's default
	Reach         int  // of motion vectors, in luma samples: 1..511
	LowDelay      bool // each frame leaves at once, in a chunk of its own

	// None of these shows in the stream.
	InFlight   int  // frames submitted and not received, 1..16; 0 what keeps the backend busy
	NoPictures bool // FrameInfo.Decoded stays nil, which spares a device's copying it

	// Extra is what else of the caller's choices decides the stream (scaling, frames left out …), as text; it becomes
	// part of Settings.
	Extra string

	Logger *slog.Logger // nil: silent
}

// DefaultOptions returns the defaults; Model and Backend are the caller's.
func DefaultOptions() EncoderOptions {
	return EncoderOptions{
		QPI: 42, QPP: 42, IntraPeriod: 96, ResetInterval: 32, SceneCut: true, Threshold: -1, Reach: 128,
	}
}

// threshold resolves −1 to the model's default.
func (o *EncoderOptions) threshold() (int, error) {
	if o.Threshold >= 0 {
		return o.Threshold, nil
	}
	text, ok := "", false
	if o.Model != nil {
		text, ok = o.Model.Meta["threshold"]
	}
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maxThreshold {
		return 0, fmt.Errorf("codec: model %s: threshold %q, want 0..%d", o.Model.Name, text, maxThreshold)
	}
	return n, nil
}

func (o *EncoderOptions) check() error {
	for _, c := range []struct {
		name               string
		value, least, most int
	}{
		{"QPI", o.QPI, 0, maxQP}, {"QPP", o.QPP, 0, maxQP},
		{"IntraPeriod", o.IntraPeriod, 0, 1 << 30}, {"ResetInterval", o.ResetInterval, 0, 1 << 30},
		{"Threshold", o.Threshold, -1, maxThreshold}, {"Reach", o.Reach, 1, inference.MaxVector / 4},
	} {
		if c.value < c.least || c.value > c.most {
			return fmt.Errorf("codec: %s %d, outside %d..%d", c.name, c.value, c.least, c.most)
		}
	}
	if o.Model == nil || o.Backend == nil {
		return fmt.Errorf("codec: an encoder needs a model and a backend")
	}
	return nil
}

// Settings is the canonical text of all that decides the stream besides model and source. A stream made with equal
// settings says so itself: Info.Settings.
func (o *EncoderOptions) Settings() string {
	t, err := o.threshold()
	if err != nil {
		t = -1
	}
	return settingsText(o.QPI, o.QPP, t, o.unusual())
}

// Settings is the text that EncoderOptions.Settings had when the stream was made. What stands in the first GOP's header
// is taken from there, and defaults are left out of the stream: most streams need no metadata for this.
func (i *Info) Settings() string {
	rest, _ := i.Setting(SettingsKey)
	return settingsText(i.qpI, i.qpP, i.threshold, rest)
}

func settingsText(qpI, qpP, threshold int, rest string) string {
	s := fmt.Sprintf("qp=%d/%d skip=%d", qpI, qpP, threshold)
	if rest != "" {
		s += " " + rest
	}
	return s
}

// unusual lists the settings that differ from the defaults and do not show in a GOP header. Should a default change,
// this text has to begin with a mark: its absence means the defaults of today.
func (o *EncoderOptions) unusual() string {
	d := DefaultOptions()
	var s []string
	number := func(name string, value, usual int) {
		if value != usual {
			s = append(s, fmt.Sprintf("%s=%d", name, value))
		}
	}
	number("period", o.IntraPeriod, d.IntraPeriod)
	number("reset", o.ResetInterval, d.ResetInterval)
	number("reach", o.Reach, d.Reach)
	if !o.SceneCut {
		s = append(s, "scenecut=off")
	}
	if o.LowDelay {
		s = append(s, "lowdelay")
	}
	if o.Extra != "" {
		s = append(s, o.Extra)
	}
	return strings.Join(s, " ")
}
