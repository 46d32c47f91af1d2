package convert

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/nvcodec/nvcodec/yuv"
)

//go:embed frames.safetensors
var shippedFrames []byte

// ShippedClips returns the calibration frames that come with the package (CC0, cut by internal/frames) and three that
// are computed and reach further than most video: a fast pan over saturated colours, one over fine texture, and light
// that turns to its opposite with each frame.
func ShippedClips() ([]Clip, error) {
	c, err := ParseCheckpoint(shippedFrames)
	if err != nil {
		return nil, err
	}
	clips, err := c.clips()
	return append(clips, computed("colours", colours), computed("texture", texture), computed("flash", flash)), err
}

// clips reads every tensor as a clip: U8 [frames][3/2 h][w], rows of Y, then of U beside V.
func (c *Checkpoint) clips() ([]Clip, error) {
	var clips []Clip
	for _, name := range c.Names() {
		t := c.Tensors[name]
		if t.Type != "U8" || len(t.Shape) != 3 || t.Shape[1]%3 != 0 || t.Shape[2]%2 != 0 {
			return nil, fmt.Errorf("convert: %s is %s %v, want U8 [frames][3/2 height][width]", name, t.Type, t.Shape)
		}
		w, h := t.Shape[2], t.Shape[1]/3*2
		if h%2 != 0 {
			return nil, errors.New("convert: " + name + ": odd height")
		}
		clip := Clip{Name: name}
		for k := range t.Shape[0] {
			p, s := yuv.New(w, h), t.Int[k*w*h*3/2:]
			for i := range p.Y {
				p.Y[i] = byte(s[i])
			}
			for i := range p.U {
				row, col := i/(w/2), i%(w/2)
				p.U[i], p.V[i] = byte(s[w*h+row*w+col]), byte(s[w*h+row*w+w/2+col])
			}
			clip.Frames = append(clip.Frames, p)
		}
		clips = append(clips, clip)
	}
	return clips, nil
}

// computed makes 3 frames of 128x128 from pictures without bounds, seen 5 samples further right and 3 further down
// with each frame.
func computed(name string, at func(frame, plane, y, x int) byte) Clip {
	clip := Clip{Name: name, Extreme: true}
	for k := range 3 {
		p := yuv.New(128, 128)
		for i := range p.Y {
			p.Y[i] = at(k, 0, i/128+3*k, i%128+5*k)
		}
		for i := range p.U {
			y, x := (2*(i/64)+3*k)/2, (2*(i%64)+5*k)/2
			p.U[i], p.V[i] = at(k, 1, y*2, x*2), at(k, 2, y*2, x*2)
		}
		clip.Frames = append(clip.Frames, p)
	}
	return clip
}

// colours is a pattern of 24x24 blocks of full and empty planes.
func colours(_, plane, y, x int) byte {
	n := uint32(y/24*7+x/24*13+plane*5) * 2654435761
	return byte(16 + n>>31*219)
}

// texture is noise over a wave, with chroma at rest.
func texture(_, plane, y, x int) byte {
	if plane != 0 {
		return 128
	}
	n := uint32(y*2+x*1021) * 2654435761
	n = (n ^ n>>15) * 2246822519
	return byte(uint32(64+(x*x/16+y*3)%96) + n>>26)
}

// flash goes from black to white and back, evenly on the left and by blocks of colours on the right.
func flash(frame, plane, y, x int) byte {
	v := byte(128)
	switch {
	case x >= 64:
		v = colours(frame, plane, y, x)
	case plane == 0:
		v = 16
	}
	if frame%2 != 0 {
		return 251 - v
	}
	return v
}
