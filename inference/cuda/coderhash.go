//go:build cuda

package cuda

import (
	"hash/crc32"
)

// A pictureHash is what the device needs to compute CRC-32C over the w x h samples of a padded picture, of all three
// planes: powers of x mod the polynomial, by the places of the picture's rows and of their pieces.
type pictureHash struct {
	w, h, paddedW, paddedH int
	powers, parts          pointer
}

// Polynomials over GF(2) as CRC-32C has them: bit 31 is 1, bit 30 is x.
const crcOne, crcByte = 1 << 31, 1 << 23 // 1 and x^8

func crcProduct(a, b uint32) (sum uint32) {
	for i := 31; i >= 0; i-- {
		if a>>i&1 != 0 {
			sum ^= b
		}
		b = b>>1 ^ b&1*crc32.Castagnoli
	}
	return sum
}

// crcPower is x^8 to the n.
func crcPower(n int64) uint32 {
	p, square := uint32(crcOne), uint32(crcByte)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p = crcProduct(p, square)
		}
		square = crcProduct(square, square)
	}
	return p
}

// hashPiece is how many bytes of a row each lane of a warp takes.
func hashPiece(w int) int { return (w + 511) / 512 * 16 }

func hashBlocks(h int) int { return (h + 2*((h+1)/2) + 7) / 8 }

// hashBytes returns how many bytes of device memory a pictureHash takes.
func hashBytes(h int) int64 {
	return aligned(4*int64(4*256+64+h+2*((h+1)/2))) + aligned(4*int64(hashBlocks(h)))
}

// newPictureHash works out the powers for a size; release gives their memory back.
func newPictureHash(m machine, w, h, paddedW, paddedH int) (*pictureHash, error) {
	p := &pictureHash{w: w, h: h, paddedW: paddedW, paddedH: paddedH}
	var image []byte
	put := func(v uint32) { image = append(image, byte(v), byte(v>>8), byte(v>>16), byte(v>>24)) }
	table := crc32.MakeTable(crc32.Castagnoli)
	for zeros := range int64(4) {
		for b := range 256 {
			put(crcProduct(table[b], crcPower(zeros)))
		}
	}
	cw, ch := (w+1)/2, (h+1)/2
	for _, row := range []int{w, cw} {
		for lane := range 32 {
			put(crcPower(int64(max(0, row-(lane+1)*hashPiece(row)))))
		}
	}
	rows := make([]uint32, h+2*ch)
	power, luma, chroma := uint32(crcOne), crcPower(int64(w)), crcPower(int64(cw))
	for i := len(rows) - 1; i >= 0; i-- {
		rows[i] = power
		if i < h {
			power = crcProduct(power, luma)
		} else {
			power = crcProduct(power, chroma)
		}
	}
	for _, v := range rows {
		put(v)
	}
	var err error
	if p.powers, err = loadedImage(m, hashBytes(h), image); err != nil {
		return nil, err
	}
	p.parts = p.powers + pointer(aligned(int64(len(image))))
	return p, nil
}

func (p *pictureHash) release(m machine) error { return m.free(p.powers) }

// calls returns the launches that leave picture's hash at dst and, of a decoder, whose frame parameters frame are then
// (else 0), in its result.
func (p *pictureHash) calls(dst, picture, frame pointer) []call {
	total := int64(p.w)*int64(p.h) + 2*int64((p.w+1)/2)*int64((p.h+1)/2)
	zeros := ^crcProduct(1<<32-1, crcPower(total))
	return []call{
		{kernel: "hash_rows", grid: hashBlocks(p.h), args: arg(p.parts, picture, p.powers, p.w, p.h, p.paddedW, p.paddedH, hashPiece(p.w), hashPiece((p.w+1)/2))},
		{kernel: "hash_sum", grid: 1, args: arg(dst, p.parts, hashBlocks(p.h), int64(zeros), frame)},
	}
}
