// Package motion finds the block vectors of a frame, and scene cuts, on the encoder's side. It compares source pictures
// and uses integers only.
package motion
