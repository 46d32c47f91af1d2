//go:build cuda

package cuda

// A pointer is an address in a device's memory.
type pointer uint64

// A machine is one stream of one device: what it is given runs in order. Copies and launches are asynchronous; host
// memory that they use comes from host and must stay until they are done. Tests run the same sessions on an emulation.
type machine interface {
	family() int     // whose kernels run: 61, 75, 80
	processors() int // how many multiprocessors share a grid
	shared() int     // bytes of dynamic shared memory that a block may have

	alloc(bytes int64) (pointer, error) // aligned to 256 bytes, content undefined
	free(p pointer) error
	host(bytes int64) ([]byte, error) // page-locked
	freeHost(b []byte) error
	available() (int64, error) // bytes of device memory

	upload(dst pointer, src []byte) error
	download(dst []byte, src pointer) error
	fill(dst pointer, value byte, bytes int64) error
	// prepare makes a launch. Each argument is a pointer or an int64.
	prepare(c call) (launch, error)
	// capture records what f gives to the machine, without running it. A machine that cannot returns nil.
	// Streams that wait in f for an event recorded in f join, and must be waited for before f ends.
	capture(f func() error) (captured, error)

	// beside makes another stream of the device, no more and no less urgent.
	beside() (machine, error)
	event() (event, error)
	// record has e pass once all is done that the stream has been given so far.
	record(e event) error
	// wait has what the stream is given from now on begin after e has passed, as it was recorded last; an event that
	// was never recorded holds nothing back.
	wait(e event) error
	// sync waits until all is done that the stream has been given.
	sync() error

	// close releases the stream; memory must have been freed.
	close() error
}

// An urgency says whose work goes first where streams wait for a multiprocessor.
type urgency int

const (
	whenever urgency = iota
	soon
	atOnce
)

// An event is a moment in the work of one stream, for others and the host to wait for.
type event interface {
	sync() error // the host waits
	close() error
}

type launch interface{ run() error }

type captured interface {
	run() error
	close() error
}

// threads is how many threads a block has unless a call says otherwise.
const threads = 256

// blocks returns how many blocks hold n threads.
func blocks(n int64) int { return int((n + threads - 1) / threads) }
