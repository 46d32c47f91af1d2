//go:build cuda

package cuda

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestAwaitLaunches: a kernel that may begin early touches no global memory ahead of its wait, but for weights and
// tables; and those that networks of warpgroups launch all may.
func TestAwaitLaunches(t *testing.T) {
	files, err := modulesOf(90)
	if err != nil {
		t.Fatal(err)
	}
	touches := regexp.MustCompile(`\b(ld|st|atom|red)\.(global|v\d|u\d|s\d|b\d)|\bld\.(volatile|relaxed|acquire)|cp\.async\.c[ag]`)
	var may []string
	for _, file := range files {
		text, err := ptx.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kernels := strings.Split(string(text), ".visible .entry ")[1:]
		for _, k := range kernels {
			name, body, _ := strings.Cut(k, "(")
			ahead, _, waits := strings.Cut(body, "griddepcontrol.wait")
			if !waits {
				continue
			}
			may = append(may, name)
			ahead = strings.ReplaceAll(ahead, "ld.global.nc", "") // see constant
			if s := touches.FindString(ahead); s != "" {
				t.Errorf("%s of %s: %s ahead of the wait", name, file, s)
			}
			if strings.Count(body, "griddepcontrol.wait") != 1 || strings.Contains(ahead, "exit;") || strings.Contains(ahead, "ret;") {
				t.Errorf("%s of %s waits more than once, or not always", name, file)
			}
		}
	}
	want := []string{"dw_large", "dw_small", "gather_8", "latent_8", "lookup_8", "pack_full", "unpack_full", "code_z", "y_tables_8"}
	for name, kernels := range groupKernels {
		for _, k := range kernels {
			want = append(want, k.name(name))
		}
	}
	for _, name := range want {
		if !slices.Contains(may, name) {
			t.Errorf("%s does not wait for the launches before it", name)
		}
	}
}

// TestEarly: a call may begin early only where nothing but a call stands ahead of it in its stream.
func TestEarly(t *testing.T) {
	f := &fork{m: newEmulated(&emulatedDevice{}, 80)}
	defer f.close()
	all, err := f.launches([]call{{kernel: "a"}, {kernel: "b"}, {kernel: "c", stream: 1}, {kernel: "d", stream: 1, after: 2}, {kernel: "e"}, {kernel: "f"}, {kernel: "g", stream: 1}})
	if err != nil {
		t.Fatal(err)
	}
	var early []string
	for _, l := range all {
		if l, ok := l.(*emulatedLaunch); ok && l.c.early {
			early = append(early, l.c.kernel)
		}
	}
	if got, want := strings.Join(early, ""), "bfg"; got != want {
		t.Errorf("%q begin early, want %q", got, want)
	}
}
