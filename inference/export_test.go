package inference

import "github.com/nvcodec/nvcodec/inference/kernel"

// Unfused returns the backend that computes node by node, every value whole in the arena.
func Unfused(set kernel.Set) Backend { return &cpu{set: set} }
