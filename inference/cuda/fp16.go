//go:build cuda

package cuda

// fp16 names the kernels that compute convolutions on FP16 matrix units (kernels/fp16.cuh): those of a family, but for lin
// and lin_actsum4.
const (
	fp16       = "fp16"
	fp16Family = 75
)

// onFP16 has a lin or lin_actsum4 computed on FP16 matrix units.
func onFP16(c call) call {
	name, suffix := c.kernel[:len(c.kernel)-2], c.kernel[len(c.kernel)-2:]
	c.kernel = name + "_fp16" + suffix
	return c
}

// units has a call computed on the units that the backend was opened for.
func (b *backend) units(c call) call {
	if b.fp16 {
		return onFP16(c)
	}
	return c
}
