package rans

import "fmt"

// Constants of the format.
const (
	Low        = 1 << 16 // states are in [Low, 2^32)
	GroupLanes = 32      // lanes that share a sequence of words
	MaxLanes   = 1024
	MaxTables  = 128 // bucket tables that one Tables can hold
	MaxLog     = 8   // largest parameter n of a bucket table
)

// A Spec describes one bucket table.
type Spec struct {
	Log     int      // n: there are 2^n buckets, 2 ≤ n ≤ MaxLog
	Symbols int      // m: symbols 0..m-1, 2 ≤ m ≤ 2^n
	First   int16    // the value that stands for symbol 0 in Encode and Decode; First+m-1 fits int16
	Split   []uint16 // right<<(16-n) | cut for each bucket
}

// Tables holds bucket tables ready for both directions. It does not change once built and may be shared.
type Tables struct {
	desc [MaxTables]desc
	// Each table has 2^n consecutive entries of dec and enc from desc.base on. The arrays have a fixed size so that a
	// masked index needs no bounds check.
	dec  *[MaxTables << MaxLog]uint64 // split | f(b)<<16 | f(right)<<32 | (offset-pos of the right part)<<48
	enc  *[MaxTables << MaxLog]encSymbol
	segs []segment
}

// desc is 8 bytes, so that the descriptions of all tables take 1 KiB.
type desc struct {
	base  uint16
	mask  uint16 // W-1
	first int16
	shift uint16 // 16-n
}

// encSymbol serves x/f and the way back from an offset to a slot.
type encSymbol struct {
	rcp  uint64 // ⌈2^48 / f⌉
	freq uint32
	seg  uint32 // the symbol's first segment
}

// A segment is a run of consecutive slots of one symbol within one bucket: offsets below end (and not below the end of
// the segment before) lie at slot offset+delta mod 2^16. No segment is longer than a bucket, so offset o lies in
// segment o/W or a later one.
type segment struct{ end, delta uint16 }

// NewTables checks the specs and builds their tables. Everything that a model file can get wrong is an error.
func NewTables(specs []Spec) (*Tables, error) {
	if len(specs) > MaxTables {
		return nil, fmt.Errorf("rans: %d tables, want at most %d", len(specs), MaxTables)
	}
	t := &Tables{dec: new([MaxTables << MaxLog]uint64), enc: new([MaxTables << MaxLog]encSymbol)}
	base := uint32(0)
	for i := range specs {
		if err := t.add(i, base, &specs[i]); err != nil {
			return nil, fmt.Errorf("rans: table %d: %w", i, err)
		}
		base += 1 << specs[i].Log
	}
	return t, nil
}

// Freqs returns the frequency of each symbol, which sum to 65536, or says what is wrong with s.
func (s *Spec) Freqs() ([]int, error) {
	if s.Log < 2 || s.Log > MaxLog {
		return nil, fmt.Errorf("2^%d buckets, want 2^2 to 2^%d", s.Log, MaxLog)
	}
	if s.Symbols < 2 || s.Symbols > 1<<s.Log {
		return nil, fmt.Errorf("%d symbols, want 2 to %d", s.Symbols, 1<<s.Log)
	}
	if int(s.First)+s.Symbols-1 > 32767 {
		return nil, fmt.Errorf("first value %d of %d leaves int16", s.First, s.Symbols)
	}
	if len(s.Split) != 1<<s.Log {
		return nil, fmt.Errorf("%d splits, want %d", len(s.Split), 1<<s.Log)
	}
	w := 1 << (16 - s.Log)
	f := make([]int, s.Symbols)
	for b, v := range s.Split {
		right, cut := int(v)/w, int(v)%w
		if right >= s.Symbols {
			return nil, fmt.Errorf("bucket %d: right symbol %d of %d", b, right, s.Symbols)
		}
		if cut > 0 && (b >= s.Symbols || right == b) {
			return nil, fmt.Errorf("bucket %d: cut %d where it must be 0", b, cut)
		}
		if b < s.Symbols {
			f[b] += cut
		}
		f[right] += w - cut
	}
	for k, n := range f {
		if n < 1 || n > 65535 {
			return nil, fmt.Errorf("symbol %d has frequency %d, want 1 to 65535", k, n)
		}
	}
	return f, nil
}

func (t *Tables) add(i int, base uint32, s *Spec) error {
	freq, err := s.Freqs()
	if err != nil {
		return err
	}
	shift := 16 - s.Log
	w := 1 << shift
	t.desc[i] = desc{base: uint16(base), mask: uint16(w - 1), first: s.First, shift: uint16(shift)}
	next := make([]int, s.Symbols) // offset of the symbol's next slot
	segs := make([][]segment, s.Symbols)
	for b := range next {
		if cut := int(s.Split[b]) % w; cut > 0 {
			segs[b] = append(segs[b], segment{end: uint16(cut), delta: uint16(b << shift)})
			next[b] = cut
		}
	}
	for b, v := range s.Split {
		right, cut := int(v)/w, int(v)%w
		left := 0
		if b < s.Symbols {
			left = freq[b]
		}
		o := next[right]
		next[right] += w - cut
		segs[right] = append(segs[right], segment{end: uint16(next[right]), delta: uint16(b<<shift + cut - o)})
		t.dec[base+uint32(b)] = uint64(v) | uint64(left)<<16 | uint64(freq[right])<<32 | uint64(uint16(o-cut))<<48
	}
	for k, f := range freq {
		t.enc[base+uint32(k)] = encSymbol{rcp: (1<<48 + uint64(f) - 1) / uint64(f), freq: uint32(f), seg: uint32(len(t.segs))}
		t.segs = append(t.segs, segs[k]...)
	}
	return nil
}

// Split lays frequencies that sum to 65536 out in 2^log buckets: the symbols that do not fill their own bucket are
// topped up, lowest first, by the lowest symbol that has slots left over. Any other layout is as valid; this one is deterministic.
func Split(freq []int, log int) []uint16 {
	w := 1 << (16 - log)
	left := make([]int, 1<<log)
	copy(left, freq)
	out := make([]uint16, 1<<log)
	var small, large []int
	for b, f := range left {
		if f < w {
			small = append(small, b)
		} else {
			large = append(large, b)
		}
	}
	for len(small) > 0 {
		b, r := small[0], large[0]
		small = small[1:]
		out[b] = uint16(r*w + left[b])
		left[r] -= w - left[b]
		if left[r] < w {
			large = large[1:]
			small = append(small, r)
		}
	}
	for _, b := range large {
		out[b] = uint16(b * w)
	}
	return out
}
