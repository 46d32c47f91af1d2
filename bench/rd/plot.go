package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

var colours = []string{"#d62728", "#ff7f0e", "#1f77b4", "#7fb3d5", "#2ca02c", "#9467bd", "#8c564b"}

// plot draws a small chart for each clip, PSNR-Y over bits a pixel (logarithmic), as SVG.
func plot(rs []*clipResult) string {
	const w, h, cols, pad = 420, 300, 2, 46
	if len(rs) == 0 {
		return ""
	}
	names := ourNames(rs)
	for _, p := range peers {
		if _, ok := rs[0].Curves[p.name]; ok {
			names = append(names, p.name)
		}
	}
	rows := (len(rs) + cols - 1) / cols
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", w*cols, h*rows+30)
	fmt.Fprintln(&b, `<rect width="100%" height="100%" fill="white"/>`)
	x := 10
	for i, n := range names {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="16" y2="16" stroke="%s" stroke-width="2"/><text x="%d" y="20">%s</text>`+"\n", x, x+18, colours[i%len(colours)], x+22, html.EscapeString(n))
		x += 44 + 6*len(n)
	}
	for k, r := range rs {
		x0, y0 := float64(k%cols*w+pad), float64(k/cols*h+30+24)
		pw, ph := float64(w-pad-14), float64(h-24-36)
		px := float64(r.Width * r.Height * r.Frames)
		minR, maxR, minP, maxP := math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
		for _, n := range names {
			for _, p := range r.Curves[n] {
				v := math.Log10(float64(p.Bytes) * 8 / px)
				minR, maxR = min(minR, v), max(maxR, v)
				minP, maxP = min(minP, p.PSNRY), max(maxP, p.PSNRY)
			}
		}
		at := func(p point) (float64, float64) {
			v := math.Log10(float64(p.Bytes) * 8 / px)
			return x0 + (v-minR)/(maxR-minR)*pw, y0 + (maxP-p.PSNRY)/(maxP-minP)*ph
		}
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" font-weight="bold">%s %s, %d frames</text>`+"\n", x0, y0-8, html.EscapeString(r.Name), r.Size, r.Frames)
		fmt.Fprintf(&b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#999"/>`+"\n", x0, y0, pw, ph)
		for i := range 4 {
			f := float64(i) / 3
			fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.3g</text><text x="%.1f" y="%.1f" text-anchor="end">%.1f</text>`+"\n",
				x0+f*pw, y0+ph+13, math.Pow(10, minR+f*(maxR-minR)), x0-4, y0+(1-f)*ph+4, minP+f*(maxP-minP))
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">bits a pixel; PSNR-Y in dB</text>`+"\n", x0+pw/2, y0+ph+26)
		for i, n := range names {
			var pts []string
			for _, p := range r.Curves[n] {
				x, y := at(p)
				pts = append(pts, fmt.Sprintf("%.1f,%.1f", x, y))
				fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", x, y, colours[i%len(colours)])
			}
			fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", strings.Join(pts, " "), colours[i%len(colours)])
		}
	}
	fmt.Fprintln(&b, "</svg>")
	return b.String()
}
