module github.com/nvcodec/nvcodec

go 1.24.0

require (
	github.com/asticode/go-astiav v0.39.0
	github.com/rogpeppe/go-internal v1.14.1
	github.com/schollz/progressbar/v3 v3.18.0
	github.com/spf13/cobra v1.10.2
	golang.org/x/sys v0.35.0
	golang.org/x/term v0.34.0
	gonum.org/v1/gonum v0.16.0
	gorgonia.org/cu v0.9.6
)

require (
	github.com/asticode/go-astikit v0.42.0 // indirect
	github.com/google/uuid v1.1.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	golang.org/x/tools v0.26.0 // indirect
)
