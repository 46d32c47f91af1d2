//go:build !noembed

package models

import (
	"embed"
	"io/fs"
)

//go:embed *.nvm
var embedded embed.FS

func files() (fs.FS, error) { return embedded, nil }
