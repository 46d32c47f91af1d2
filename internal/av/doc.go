// Package av is the only one that touches FFmpeg's libraries: thin, owning types over go-astiav and a small C shim
// for what that lacks. It knows nothing of the codec or of policies; package pipeio decides.
//
// Nothing here has a finalizer: whoever gets an object closes it, and [Live] counts what is open. An object belongs
// to one goroutine at a time; frames and packets may pass from one to another.
//
// The default build is for FFmpeg 5.1 (go-astiav v0.16.0), the tag ffmpeg7 with -modfile=go.ff7.mod for 7.x
// (v0.39.0). What differs in Go is in ver_ff5.go and ver_ff7.go, in C behind version macros in shim.c. The tag
// noffmpeg leaves everything out.
package av
