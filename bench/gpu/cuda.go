//go:build cuda && cgo && linux && amd64

package main

import _ "github.com/nvcodec/nvcodec/inference/cuda" // registers itself
