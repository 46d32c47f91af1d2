//go:build cuda

package cuda

import "github.com/nvcodec/nvcodec/inference"

// CodingMemory returns how many bytes of device memory and of page-locked host memory an encoder or decoder of whole
// frames takes, and how many the weights take that all coders of a model on one device share: what the family of
// kernels that takes most wants. Frames in flight cost page-locked memory only.
func CodingMemory(o *inference.CodingOptions, encode bool) (device, host, shared int64, err error) {
	if err := checkOptions(o); err != nil {
		return 0, 0, 0, err
	}
	err = eachFamily(o.Model, func(w *weights) error {
		d, h, err := codingMemory(o, w, encode)
		device, host, shared = max(device, d), max(host, h), max(shared, w.bytes)
		return err
	})
	return device, host, shared, err
}

func codingMemory(o *inference.CodingOptions, w *weights, encode bool) (device, host int64, err error) {
	c, layout := &coder{}, (func() (int64, *slotLayout))(nil)
	if encode {
		e := &encoder{}
		c, layout = &e.coder, e.layout
	} else {
		d := &decoder{}
		c, layout = &d.coder, d.layout
	}
	if err := c.plan(o, w, encode); err != nil {
		return 0, 0, err
	}
	l := &ledger{}
	if _, err = newCoderTables(l, o.Model); err == nil {
		_, err = newPictureHash(l, o.W, o.H, c.size.W, c.size.H)
	}
	if err == nil && encode {
		_, err = newSearchTables(l, o.Model)
	}
	own, slot := layout()
	return c.net.layout.device.bytes + own + l.held, int64(slots(o)) * slot.bytes(), err
}

// A ledger is a machine that only counts the device memory it is asked for.
type ledger struct {
	machine
	held int64
}

func (l *ledger) alloc(bytes int64) (pointer, error) {
	l.held += bytes
	return alignment, nil
}

func (l *ledger) host(bytes int64) ([]byte, error) { return make([]byte, bytes), nil }
func (l *ledger) freeHost([]byte) error            { return nil }
func (l *ledger) upload(pointer, []byte) error     { return nil }
func (l *ledger) sync() error                      { return nil }
