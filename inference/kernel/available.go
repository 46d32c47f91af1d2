package kernel

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Env is the environment variable that lowers the level: with NVCODEC_KERNELS=generic, Available ends at generic.
const Env = "NVCODEC_KERNELS"

// overlays holds the levels of this architecture in rising order. Each replaces in the Set it is given the functions
// it has and names the result, or reports that this machine cannot run it. Files kernel_<arch>.go add to it; under
// the tag purego nothing does.
var overlays []func(Set) (Set, bool)

// Available lists Generic first, then every set that this machine can run and Env allows, the fastest last.
func Available() []Set {
	sets := []Set{Generic()}
	for _, overlay := range overlays {
		if s, ok := overlay(sets[len(sets)-1]); ok {
			sets = append(sets, s)
		}
	}
	if i := indexOf(sets, os.Getenv(Env)); i >= 0 {
		sets = sets[:i+1]
	}
	return sets
}

// ByName returns the set of that name, or the fastest for "auto" and "".
func ByName(name string) (Set, error) {
	sets := Available()
	if env := os.Getenv(Env); env != "" && env != "auto" && indexOf(sets, env) < 0 {
		return Set{}, fmt.Errorf("kernel: %s=%q is not available here (have %s)", Env, env, names(sets))
	}
	if name == "" || name == "auto" {
		return sets[len(sets)-1], nil
	}
	i := indexOf(sets, name)
	if i < 0 {
		return Set{}, fmt.Errorf("kernel: set %q is not available here (have %s)", name, names(sets))
	}
	return sets[i], nil
}

func indexOf(sets []Set, name string) int {
	return slices.IndexFunc(sets, func(s Set) bool { return s.Name == name })
}

func names(sets []Set) string {
	all := make([]string, len(sets))
	for i, s := range sets {
		all[i] = s.Name
	}
	return strings.Join(all, ", ")
}
