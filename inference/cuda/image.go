//go:build cuda

package cuda

// loaded takes bytes of device memory and fills the first n with what write makes of n zero bytes; the machine is left
// in sync.
func loaded(m machine, bytes, n int64, write func(image []byte)) (pointer, error) {
	p, err := m.alloc(bytes)
	if err != nil {
		return 0, err
	}
	if err := fillDevice(m, p, n, write); err != nil {
		m.free(p)
		return 0, err
	}
	return p, nil
}

// fillDevice fills device memory at p with what write makes of n zero bytes.
func fillDevice(m machine, p pointer, n int64, write func(image []byte)) error {
	host, err := m.host(n)
	if err != nil {
		return err
	}
	clear(host)
	write(host)
	if err = m.upload(p, host); err == nil {
		err = m.sync() // host memory stays until then
	}
	if e := m.freeHost(host); err == nil {
		err = e
	}
	return err
}

// loadedImage is loaded of bytes that are there already.
func loadedImage(m machine, bytes int64, image []byte) (pointer, error) {
	return loaded(m, bytes, int64(len(image)), func(to []byte) { copy(to, image) })
}
