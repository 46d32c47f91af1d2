// Package repo holds tests of the repository as a whole: which packages use C, what the two module files require, how
// large the tracked files are. It has no code.
package repo
