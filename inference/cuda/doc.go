//go:build cuda

// Package cuda computes graphs on NVIDIA devices, bit for bit what the generic kernels give.
//
// A graph becomes a list of kernel launches, planned once for a size: every node one launch, but for what only moves or
// rescales values, which is read through or gathered in one launch where it is joined (plan_gather.go), a network's
// blocks, which run as chains (plan_chain.go), a convolution whose only reader is a gated sum, which the two share, and
// outputs of the graph that are computed where the next frame reads them. All memory of a session is one block of the device's, laid out by the plan, and page-locked
// buffers on the host; a frame in steady state allocates nothing. What varies from frame to frame (QP, threshold,
// vectors, picture) is copied to fixed places ahead of the first launch, so that the launches of a frame type are
// always the same and run as one captured CUDA graph for each half of the frame's double buffers.
//
// Beside the network, devices pad pictures, tell scene cuts and search motion (search.go), with codec/motion's results.
//
// Every operation of a session goes to the session's own stream. Coders of whole frames have several, and two for the
// network, where a frame has branches that need nothing of each other (plan_branches.go).
//
// Building needs include/cuda.h and lib on the paths of cgo (env.sh prints how), running only a driver. gpu-check.sh
// checks and times everything on a device.
package cuda

//go:generate go run trampoline.go libcuda_linux_amd64.c
//go:generate go run ptx.go kernels emu
