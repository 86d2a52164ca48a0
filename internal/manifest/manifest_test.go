package manifest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/vfs"
)

var update = flag.Bool("update", false, "write the golden files of the current version")

// key returns an internal key.
func key(user string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte(user), ^(seq<<8 | 2))
}

func file(number uint64, tier uint32, run uint64, from, to string) File {
	return File{
		Number: number, Size: 4096 + int64(number), Tier: tier, Run: run,
		Smallest: key(from, 40), Largest: key(to, 7), MinSeq: 7, MaxSeq: 40,
		Entries: 100, Tombstones: 3, Hash: 0x1234567890abcdef * number,
	}
}

// sample returns a sorted manifest with all kinds of logs and files, features and
// extensions.
func sample() *Manifest {
	m := sample2()
	m.Version, m.Optional, m.Epoch = 3, 1<<63|2, 7
	m.Extensions = feature.AppendRecord(nil, feature.Record{Type: 0x7001, Data: []byte("the base")})
	m.Files[0].NewKeys = AllNewKeys * 3 / 4
	m.Files[0].Origin = [16]byte{0x0f, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	m.Files[3].Stamp, m.Files[3].MinSeq, m.Files[3].Tombstones = 638_000_000_000_000_000, 40, 0
	m.Files[0].Extensions = feature.AppendRecord(nil, feature.Record{Type: 0x7002, Data: []byte("of it")})
	return m
}

// sample2 is sample without what version 2 lacks.
func sample2() *Manifest {
	m := &Manifest{
		Version: 2, DBID: [16]byte{0xdb, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		NextFile: 31, HighWater: 638_000_000_000_000_000, LastSeq: 40,
		Logs: []Log{{Number: 20, Sealed: 8192}, {Number: 30, Proven: 4160}},
		Files: []File{
			file(29, 0, 5, "a", "z"),
			file(25, 0, 4, "a", "c"), file(26, 0, 4, "d", "d"), file(24, 0, 4, "e", "y"),
			file(9, 1, 3, "b", "x"),
			file(3, BottomTier, 1, "a", "f"), file(8, BottomTier, 2, "g", "z"), file(1, BottomTier, 1, "zzy", "zzz"),
		},
	}
	for i := range m.Files {
		m.Files[i].Origin = m.DBID
	}
	return m
}

// greatest returns a manifest whose counters and lengths have their limits.
func greatest() *Manifest {
	extensions := func(n int) []byte {
		return feature.AppendRecord(nil, feature.Record{Type: 0x7001, Data: make([]byte, n-8)})
	}
	f := file(maxNext-1, maxTier, math.MaxUint64, strings.Repeat("k", maxKey-trailerLen), "")
	f.Size, f.Largest, f.NewKeys, f.Extensions = math.MaxInt64, f.Smallest, AllNewKeys, extensions(maxFileExtensions)
	f.MinSeq, f.MaxSeq, f.Entries, f.Tombstones = maxSeq, maxSeq, math.MaxUint64, math.MaxUint64
	m := &Manifest{
		Version: 3, NextFile: maxNext, HighWater: math.MaxUint64, LastSeq: maxSeq, Epoch: math.MaxUint64,
		Logs: []Log{{Number: 1, Sealed: maxEnd}, {Number: maxNext - 2, Proven: maxEnd}}, Files: []File{f},
	}
	reserved := feature.Record{Type: typeReservedSeq, Data: binary.LittleEndian.AppendUint64(nil, maxSeq)}
	m.Extensions = append(feature.AppendRecord(nil, reserved), extensions(maxExtensions-16)...)
	return m
}

func newMem(tb testing.TB) *vfs.Mem {
	tb.Helper()
	m := vfs.NewCrashMem()
	if err := errors.Join(m.MkdirAll("db"), m.SyncDir("/")); err != nil {
		tb.Fatal(err)
	}
	return m
}

func writeBytes(tb testing.TB, m *vfs.Mem, name string, b []byte) {
	tb.Helper()
	if err := m.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		tb.Fatal(err)
	}
	f, err := m.Create(name)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := f.WriteAt(b, 0); err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close(), m.SyncDir("db")); err != nil {
		tb.Fatal(err)
	}
}

func mustEncode(tb testing.TB, m *Manifest) []byte {
	tb.Helper()
	b, err := encode(m)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct {
		name string
		m    *Manifest
	}{
		{"empty", &Manifest{Version: 3, NextFile: 1}},
		{"logs", &Manifest{Version: 3, NextFile: 9, Logs: []Log{{Number: 1, Proven: 4104}, {Number: 7}, {Number: 8, Sealed: 4096}}}},
		{"all", sample()},
		{"greatest", greatest()},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := newMem(t)
			if _, err := Read(mem, "db"); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("without a manifest: %v", err)
			}
			if err := Write(mem, "db", c.m); err != nil {
				t.Fatal(err)
			}
			got, err := Read(mem, "db")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.m) { // cmp.Diff takes seconds for the extensions of the greatest
				t.Fatalf("manifest (-want +got):\n%s", cmp.Diff(c.m, got))
			}
			if again := mustEncode(t, got); !bytes.Equal(again, mustEncode(t, c.m)) {
				t.Fatalf("decoded and encoded again: %x", again)
			}
			if names, err := mem.List("db"); err != nil || len(names) != 1 {
				t.Fatalf("directory holds %v, %v", names, err)
			}
		})
	}
}

// TestOneEncoding shuffles logs and files: the encoding does not depend on the order.
func TestOneEncoding(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	want := mustEncode(t, sample())
	for range 100 {
		m := sample()
		m.Version = 0
		rnd.Shuffle(len(m.Files), func(i, j int) { m.Files[i], m.Files[j] = m.Files[j], m.Files[i] })
		rnd.Shuffle(len(m.Logs), func(i, j int) { m.Logs[i], m.Logs[j] = m.Logs[j], m.Logs[i] })
		before := m.Clone()
		if got := mustEncode(t, m); !bytes.Equal(got, want) {
			t.Fatalf("order %+v: got %x, want %x", m, got, want)
		}
		if diff := cmp.Diff(before, m); diff != "" {
			t.Fatalf("encode changed its argument:\n%s", diff)
		}
	}
}

// TestInvariants violates each invariant: Write returns an error, and so does decode
// with a correct sum.
func TestInvariants(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(m *Manifest)
		want string
	}{
		{"log twice", func(m *Manifest) { m.Logs[1].Number = 20 }, "log 20 is listed after log 20"},
		{"log number 0", func(m *Manifest) { m.Logs[0].Number = 0 }, "number 0"},
		{"log number above", func(m *Manifest) { m.Logs[1].Number = 31 }, "number 31, want 1 to 30"},
		{"sealed too far", func(m *Manifest) { m.Logs[0].Sealed = 1<<31 + 1 }, "sealed at 2147483649"},
		{"proven too far", func(m *Manifest) { m.Logs[1].Proven = 1<<31 + 1 }, "proven to 2147483649"},
		{"sealed and proven", func(m *Manifest) { m.Logs[0].Proven = 4096 }, "both sealed at 8192 and proven to 4096"},
		{"file twice", func(m *Manifest) { m.Files[0].Number = 9 }, "number 9 is used twice"},
		{"file and log", func(m *Manifest) { m.Files[0].Number = 30 }, "number 30 is used twice"},
		{"file number 0", func(m *Manifest) { m.Files[0].Number = 0 }, "number 0"},
		{"file number above", func(m *Manifest) { m.Files[0].Number = 99 }, "number 99"},
		{"size", func(m *Manifest) { m.Files[2].Size = 0 }, "file 26: size is 0"},
		{"no entries", func(m *Manifest) { m.Files[2].Entries = 0 }, "0 entries with 3"},
		{"no entries and no tombstones", func(m *Manifest) { m.Files[2].Entries, m.Files[2].Tombstones = 0, 0 }, "0 entries with 0"},
		{"tombstones", func(m *Manifest) { m.Files[2].Tombstones = 101 }, "100 entries with 101"},
		{"tombstones of a loaded file", func(m *Manifest) { m.Files[3].Tombstones = 1 }, "sequences 40 to 40 and 1 tombstones"},
		{"sequences of a loaded file", func(m *Manifest) { m.Files[3].MinSeq = 39 }, "sequences 39 to 40 and 0 tombstones"},
		{"stamp above", func(m *Manifest) { m.Files[3].Stamp++ }, "loaded with the timestamp 638000000000000001"},
		{"sequences", func(m *Manifest) { m.Files[2].MinSeq = 41 }, "sequences 41 to 40"},
		{"sequence above", func(m *Manifest) { m.LastSeq = 39 }, "sequences 7 to 40, the last is 39"},
		{"no smallest", func(m *Manifest) { m.Files[2].Smallest = nil }, "bounds of 0 and 9 bytes"},
		{"smallest is a trailer", func(m *Manifest) { m.Files[2].Smallest = key("", 1) }, "bounds of 8 and 9 bytes"},
		{"largest is a trailer", func(m *Manifest) { m.Files[2].Largest = key("", 1) }, "bounds of 9 and 8 bytes"},
		{"bounds", func(m *Manifest) { m.Files[4].Smallest = key("y", 1) }, "is above the largest"},
		{"overlap", func(m *Manifest) { m.Files[1].Largest = key("d", 9) }, "files 25 and 26 of run 4 overlap"},
		{"key in two files", func(m *Manifest) { m.Files[1].Largest = key("d", 50) }, "files 25 and 26 of run 4 overlap"},
		{"overlap at the bottom", func(m *Manifest) { m.Files[5].Largest = key("h", 9) }, "files 3 and 8 of run 2 overlap"},
		{"tier", func(m *Manifest) { m.Files[4].Tier = BottomTier - 1 }, "tier 4294967294, at most 255"},
		{"no sequence left", func(m *Manifest) { m.LastSeq = 1 << 56 }, "last sequence is 72057594037927936"},
		{"required feature", func(m *Manifest) { m.Required = 4 }, "unknown required feature: bit 2, which has no name"},
		{"required feature with a name", func(m *Manifest) {
			m.Required = 4
			m.Extensions = feature.AppendName(nil, 2, "range-tombstones")
		}, `unknown required feature: "range-tombstones"`},
		{"required record", func(m *Manifest) {
			m.Extensions = feature.AppendRecord(nil, feature.Record{Type: 9, Required: true})
		}, "extension record of type 9"},
		{"required record of a file", func(m *Manifest) {
			m.Files[2].Extensions = feature.AppendRecord(nil, feature.Record{Type: 9, Required: true})
		}, "extension record of type 9"},
		{"bad record of a file", func(m *Manifest) { m.Files[2].Extensions = []byte{1} }, "extension area at 0: record of 1 bytes"},
		{"extensions", func(m *Manifest) { m.Extensions = []byte{1} }, "extension area at 0: record of 1 bytes"},
		{"extensions of a file", func(m *Manifest) { m.Files[2].Extensions = make([]byte, 8) }, "record of type 0"},
		{"new keys", func(m *Manifest) { m.Files[2].NewKeys = AllNewKeys + 1 }, "share of new keys is 65537, at most 65536"},
		{"two shares of new keys of one file", func(m *Manifest) {
			m.Files[6].Number, m.Files[6].Size, m.Files[6].Hash = 3, m.Files[5].Size, m.Files[5].Hash
			m.Files[6].NewKeys = 1
		}, "number 3 is used twice"},
		{"two origins of one file", func(m *Manifest) {
			m.Files[6].Number, m.Files[6].Size, m.Files[6].Hash = 3, m.Files[5].Size, m.Files[5].Hash
			m.Files[6].Origin[0] = 1
		}, "number 3 is used twice"},
		{"no number left", func(m *Manifest) { m.NextFile = 1e18 + 1 }, "next number is 1000000000000000001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sample()
			c.edit(m)
			mem := newMem(t)
			if err := Write(mem, "db", m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Write: got %v, want %q", err, c.want)
			}
			if names, err := mem.List("db"); err != nil || len(names) != 0 {
				t.Fatalf("files %v are left, %v", names, err)
			}
			_, err := decode(appendManifest(nil, m))
			newer := strings.HasPrefix(c.name, "required")
			if errors.Is(err, ErrNewerFormat) != newer || errors.Is(err, corrupt.ErrCorrupt) == newer || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("decode: got %v, want %q", err, c.want)
			}
		})
	}
	unsorted := sample()
	unsorted.Files[0], unsorted.Files[4] = unsorted.Files[4], unsorted.Files[0]
	if _, err := decode(appendManifest(nil, unsorted)); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Fatalf("files out of order: %v", err)
	}
	newer := sample()
	newer.Version = 4
	if _, err := encode(newer); !errors.Is(err, ErrNewerFormat) {
		t.Fatalf("newer version: %v", err)
	}
}

// TestSameRunSameStart encodes two files of a run with one smallest key.
func TestSameRunSameStart(t *testing.T) {
	m := sample()
	m.Files = []File{file(5, 0, 1, "a", "b"), file(4, 0, 1, "a", "c")}
	if _, err := encode(m); err == nil || !strings.Contains(err.Error(), "files 4 and 5 of run 1 overlap") {
		t.Fatalf("got %v", err)
	}
}

func TestLimits(t *testing.T) {
	m := &Manifest{NextFile: 1 << 40, Logs: make([]Log, maxLogs+1)}
	if _, err := encode(m); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Fatalf("too many logs: %v", err)
	}
	m = &Manifest{NextFile: 1 << 40, LastSeq: 40}
	long := strings.Repeat("k", 60_000)
	for i := range 600 {
		user := fmt.Sprintf("%06d%s", i, long)
		m.Files = append(m.Files, file(uint64(i+1), 1, 1, user, user))
	}
	if _, err := encode(m); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Fatalf("too many bytes: %v", err)
	}
	m.Files = nil
	m.Extensions = feature.AppendRecord(nil, feature.Record{Type: 9, Data: make([]byte, maxExtensions)})
	if _, err := encode(m); err == nil || !strings.Contains(err.Error(), "extension area of 1048584 bytes, at most") {
		t.Fatalf("too long extensions: %v", err)
	}
	m.Extensions = nil
	m.Files = []File{file(1, 1, 1, "k", "l")}
	m.Files[0].Extensions = feature.AppendRecord(nil, feature.Record{Type: 9, Data: make([]byte, maxFileExtensions)})
	if _, err := encode(m); err == nil || !strings.Contains(err.Error(), "extension area of 65544 bytes, at most") {
		t.Fatalf("too long extensions of a file: %v", err)
	}
	m.Files = []File{file(1, 1, 1, strings.Repeat("k", maxKey), "l")}
	if _, err := encode(m); err == nil || !strings.Contains(err.Error(), "bounds of") {
		t.Fatalf("key too long: %v", err)
	}
}

// TestGolden compares the bytes of a manifest with the golden file of its version and
// reads those of earlier builds. Golden files of released versions never change;
// go test ./internal/manifest -run Golden -update writes that of an unreleased version.
func TestGolden(t *testing.T) {
	first := sample2()
	first.Version, first.Logs[1].Proven = 1, 0
	unstamped := sample()
	unstamped.Files[3] = sample2().Files[3]
	for _, c := range []struct {
		name string
		want *Manifest
	}{
		{"testdata/manifest-v1", first},
		{"testdata/manifest-v2", sample2()},
		{"testdata/manifest-v3-unstamped", unstamped},
		{"testdata/manifest-v3", sample()},
	} {
		t.Run(c.name, func(t *testing.T) {
			current := c.name == "testdata/manifest-v3"
			if current && *update {
				if err := os.WriteFile(c.name, mustEncode(t, c.want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(c.name)
			if err != nil {
				t.Fatal(err)
			}
			m, err := decode(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, m); diff != "" {
				t.Errorf("manifest (-want +got):\n%s", diff)
			}
			if !current {
				return
			}
			if diff := cmp.Diff(golden, mustEncode(t, c.want)); diff != "" {
				t.Errorf("the encoding of version %d changed (-golden +got):\n%s", version, diff)
			}
		})
	}
}

// TestVersion1 decodes a version 1 manifest with a field of version 2.
func TestVersion1(t *testing.T) {
	b, err := os.ReadFile("testdata/manifest-v2")
	if err != nil {
		t.Fatal(err)
	}
	b[8] = 1
	fixSum(b)
	if _, err := decode(b); !errors.Is(err, corrupt.ErrCorrupt) || !strings.Contains(err.Error(), "proven to 4160 in version 1") {
		t.Errorf("got %v", err)
	}
}

// TestSkipNumbers raises the next number by random bytes, but not beyond the greatest one.
func TestSkipNumbers(t *testing.T) {
	for _, c := range []struct {
		next uint64
		want uint64
	}{{7, 7 + 0x04030201}, {1_000_000_000_000_000_000 - 5, 1_000_000_000_000_000_000 - 5}} {
		m := Manifest{NextFile: c.next}
		if err := m.SkipNumbers(strings.NewReader("\x01\x02\x03\x04")); err != nil || m.NextFile != c.want {
			t.Errorf("from %d: %d, %v; want %d", c.next, m.NextFile, err, c.want)
		}
	}
	if err := new(Manifest).SkipNumbers(strings.NewReader("abc")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a source that ends: %v", err)
	}
}

// TestSame changes each part of a manifest that a database could have written after another one.
func TestSame(t *testing.T) {
	if m := sample(); !m.Same(sample()) {
		t.Error("a manifest differs from its copy")
	}
	for name, c := range map[string]struct {
		change func(m *Manifest)
		same   bool
	}{
		"next file":   {func(m *Manifest) { m.NextFile++ }, true},
		"database":    {func(m *Manifest) { m.DBID[15]++ }, false},
		"high water":  {func(m *Manifest) { m.HighWater++ }, false},
		"sequence":    {func(m *Manifest) { m.LastSeq++ }, false},
		"log":         {func(m *Manifest) { m.Logs[1].Proven++ }, false},
		"fewer logs":  {func(m *Manifest) { m.Logs = m.Logs[1:] }, false},
		"fewer files": {func(m *Manifest) { m.Files = m.Files[1:] }, false},
		"file":        {func(m *Manifest) { m.Files[2].Number = 27 }, false},
		"tier":        {func(m *Manifest) { m.Files[4].Tier++ }, false},
		"run":         {func(m *Manifest) { m.Files[4].Run++ }, false},
		"smallest":    {func(m *Manifest) { m.Files[0].Smallest = key("b", 40) }, false},
		"largest":     {func(m *Manifest) { m.Files[0].Largest = key("y", 7) }, false},
	} {
		m := sample()
		c.change(m)
		if got := m.Same(sample()); got != c.same {
			t.Errorf("%s: Same is %t, want %t", name, got, c.same)
		}
	}
}

// TestClone changes logs and files of a clone. The manifest must stay as it is, because a change that fails goes back to it.
func TestClone(t *testing.T) {
	m := sample()
	c := m.Clone()
	if diff := cmp.Diff(m, c); diff != "" {
		t.Errorf("a clone differs: %s", diff)
	}
	c.Logs[0].Sealed++
	c.Files[0].Run++
	c.Epoch++
	if diff := cmp.Diff(sample(), m); diff != "" {
		t.Errorf("a change of the clone changes the manifest: %s", diff)
	}
}
