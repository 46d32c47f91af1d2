module github.com/nvcodec/nvcodec

go 1.24
