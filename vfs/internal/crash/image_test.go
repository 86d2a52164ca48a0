package crash

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// model is an image and its expected bytes.
type model struct {
	im   Image
	want []byte
}

func (m *model) check(t *testing.T, seed uint64) {
	t.Helper()
	if m.im.Size != int64(len(m.want)) {
		t.Fatalf("seed %d: size is %d, want %d", seed, m.im.Size, len(m.want))
	}
	got := make([]byte, len(m.want)+2*chunkBytes)
	m.im.Read(got, 0)
	if !bytes.Equal(got[:len(m.want)], m.want) {
		t.Fatalf("seed %d: contents differ", seed)
	}
	if tail := got[len(m.want):]; !bytes.Equal(tail, make([]byte, len(tail))) {
		t.Fatalf("seed %d: bytes past the size are not zero", seed)
	}
}

// TestImageCopies changes images and their copies at random: a change of one must not
// show in another.
func TestImageCopies(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 0))
		all := []*model{{}}
		for range 60 {
			m := all[rng.IntN(len(all))]
			switch rng.IntN(4) {
			case 0:
				all = append(all, &model{m.im.Freeze(), bytes.Clone(m.want)})
			case 1:
				size := rng.IntN(4 * chunkBytes)
				m.im.Clip(int64(size))
				m.im.Size = int64(size)
				m.want = append(m.want, make([]byte, max(size-len(m.want), 0))...)[:size]
			default:
				off, p := rng.IntN(3*chunkBytes), make([]byte, 1+rng.IntN(2*chunkBytes))
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				m.im.Write(p, int64(off))
				m.want = append(m.want, make([]byte, max(off+len(p)-len(m.want), 0))...)
				copy(m.want[off:], p)
			}
		}
		for _, m := range all {
			m.check(t, seed)
		}
	}
}

// TestPutAndClip puts bytes beyond the size and clips them.
func TestPutAndClip(t *testing.T) {
	m := model{}
	m.im.Write([]byte("abc"), 0)
	copied := m.im.Freeze()
	m.im.Put([]byte("XYZ"), chunkBytes-1)
	m.im.Clip(chunkBytes + 1)
	m.im.Size = chunkBytes + 1
	m.want = make([]byte, chunkBytes+1)
	copy(m.want, "abc")
	copy(m.want[chunkBytes-1:], "XY")
	m.check(t, 0)
	(&model{copied, []byte("abc")}).check(t, 0)
}

// TestFreezeAllocations checks that a copy of a large file allocates nothing, and that a
// write to it copies one chunk and the list.
func TestFreezeAllocations(t *testing.T) {
	var im Image
	im.Write(make([]byte, 1<<20), 0)
	if n := testing.AllocsPerRun(10, func() { _ = im.Freeze() }); n != 0 {
		t.Errorf("a copy allocates %v times", n)
	}
	p := []byte("x")
	if n := testing.AllocsPerRun(10, func() {
		c := im.Freeze()
		c.Write(p, 5000)
	}); n > 2 {
		t.Errorf("the first write to a copy allocates %v times, want 2", n)
	}
}
