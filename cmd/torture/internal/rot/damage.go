package rot

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/workload"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/vfs"
)

// damage is a change to a disk.
type damage struct {
	what string
	file string // the damaged file
	off  int64  // in the file, -1 for the whole file
	do   func(*vfs.Mem) error
	// loose is set for damages to whole files. The error may name another file.
	loose bool
}

// Options configures the damages.
type Options struct {
	// Seed determines bits, garbage and the start of a stride. The default is seed 0.
	Seed uint64
	// Stride damages only every Stride-th byte. The default is 1.
	Stride int
	// EveryBit flips all bits of each byte. The default is one.
	EveryBit bool
}

const sectorBytes = 512

// damages returns all damages of a subject.
func (s *Subject) damages(o Options) ([]damage, error) {
	names, err := s.disk.List(workload.Dir)
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x726f74))
	stride := int64(max(o.Stride, 1))
	var list []damage
	for _, name := range names {
		data, err := vfs.ReadFile(s.disk, path.Join(workload.Dir, name), 1<<30)
		if err != nil {
			return nil, err
		}
		size := int64(len(data))
		for off := rng.Int64N(stride); off < size; off += stride {
			list = append(list, flips(name, data, off, o.EveryBit, rng)...)
			list = append(list, truncation(name, rng.Int64N(stride)+off, size)...)
		}
		for off := int64(0); off < size; off += sectorBytes {
			list = append(list, sectors(name, data, off, rng)...)
		}
		list = append(list, files(name, names, data, rng)...)
	}
	return list, nil
}

func patch(name string, off int64, p []byte) func(*vfs.Mem) error {
	return func(disk *vfs.Mem) error { return disk.Patch(path.Join(workload.Dir, name), off, p) }
}

func flips(name string, data []byte, off int64, all bool, rng *rand.Rand) []damage {
	var list []damage
	first, n := rng.IntN(8), 1
	if all {
		n = 8
	}
	for i := range n {
		bit := (first + i) % 8
		list = append(list, damage{
			what: fmt.Sprintf("bit %d of byte %d flipped", bit, off), file: name, off: off,
			do: patch(name, off, []byte{data[off] ^ 1<<bit}),
		})
	}
	return list
}

func truncation(name string, at, size int64) []damage {
	if at >= size {
		return nil
	}
	return []damage{{what: fmt.Sprintf("cut to %d bytes", at), file: name, off: at, do: func(disk *vfs.Mem) error {
		full := path.Join(workload.Dir, name)
		data, err := vfs.ReadFile(disk, full, size)
		if err := errors.Join(err, disk.Remove(full)); err != nil {
			return err
		}
		return create(disk, full, data[:at])
	}}}
}

// sectors returns the damages of one sector: zeros, ones, garbage, an exchange with the
// next sector.
func sectors(name string, data []byte, off int64, rng *rand.Rand) []damage {
	end := min(off+sectorBytes, int64(len(data)))
	was := data[off:end]
	zeros, ones, garbage := make([]byte, len(was)), make([]byte, len(was)), make([]byte, len(was))
	for i := range was {
		ones[i], garbage[i] = 0xff, byte(rng.Uint32())
	}
	kinds := map[string][]byte{}
	kinds["zeroed"], kinds["set to ones"], kinds["overwritten with garbage"] = zeros, ones, garbage
	if next := min(end+int64(len(was)), int64(len(data))); next-end == int64(len(was)) {
		kinds["exchanged with the next"] = slices.Concat(data[end:next], was)
	}
	var list []damage
	for _, what := range []string{"zeroed", "set to ones", "overwritten with garbage", "exchanged with the next"} {
		b, ok := kinds[what]
		if !ok || string(b) == string(data[off:off+int64(len(b))]) {
			continue
		}
		list = append(list, damage{what: fmt.Sprintf("sector at %d %s", off, what), file: name, off: off, do: patch(name, off, b)})
	}
	return list
}

// files returns the damages of a whole file.
func files(name string, names []string, data []byte, rng *rand.Rand) []damage {
	full := path.Join(workload.Dir, name)
	list := []damage{{what: "deleted", file: name, off: -1, loose: true, do: func(disk *vfs.Mem) error { return disk.Remove(full) }}}
	for _, n := range []int{1, sectorBytes, 4096} {
		junk := make([]byte, n)
		for i := range junk {
			junk[i] = byte(rng.Uint32())
		}
		list = append(list, damage{what: fmt.Sprintf("%d bytes of garbage appended", n), file: name, off: -1, do: func(disk *vfs.Mem) error {
			return write(disk, full, int64(len(data)), junk)
		}})
	}
	if kind, _ := filename.Parse(name); kind != "" {
		list = append(list, damage{what: "a copy under another number", file: name, off: -1, loose: true, do: func(disk *vfs.Mem) error {
			return create(disk, path.Join(workload.Dir, filename.Make(kind, 999)), data)
		}})
	}
	for _, other := range names {
		if other > name {
			list = append(list, damage{what: "exchanged with " + other, file: name, off: -1, loose: true, do: func(disk *vfs.Mem) error {
				const between = "between"
				with := path.Join(workload.Dir, other)
				return errors.Join(disk.Rename(full, between), disk.Rename(with, full), disk.Rename(between, with))
			}})
		}
	}
	return list
}

func write(disk *vfs.Mem, name string, off int64, b []byte) error {
	f, err := disk.OpenReadWrite(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, off)
	return errors.Join(err, f.Close())
}

func create(disk *vfs.Mem, name string, b []byte) error {
	f, err := disk.Create(name)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(b, 0)
	return errors.Join(err, f.Close())
}
