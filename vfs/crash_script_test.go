package vfs_test

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/internal/crash"
)

// TestCrashScripts runs the transcripts of testdata/crash, which show the disks after a
// power cut. Files are printed as runs of bytes: "A*512 0*88".
//
//	run                 one operation per line: create, open, mkdir, write NAME
//	                    OFF BYTE COUNT, sync NAME, syncdir DIR, rename, link,
//	                    remove, preallocate NAME OFF N
//	show                the files that a process sees
//	crash mode=M [...]  one disk after a power cut, by CrashChoice
//	states [limit=N]    the distinct disks and the number of ways to them
func TestCrashScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/crash", func(t *testing.T, file string) {
		s := &script{m: vfs.NewCrashMem(), files: map[string]vfs.File{}}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			return s.command(t, d)
		})
	})
}

type script struct {
	m     *vfs.Mem
	files map[string]vfs.File
}

func (s *script) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "run":
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			if err := s.run(strings.Fields(line)); err != nil {
				fmt.Fprintln(&out, err)
			}
		}
		return out.String()
	case "show":
		return show(t, s.m)
	case "crash":
		return show(t, s.m.CrashChoice(scriptChoice(t, d)))
	case "states":
		limit := 1 << 10
		d.MaybeScanArgs(t, "limit", &limit)
		var states []string
		for state := range s.m.CrashStates(limit) {
			states = append(states, show(t, state))
		}
		n := len(states)
		slices.Sort(states)
		states = slices.Compact(states)
		return fmt.Sprintf("%d ways, %d disks, %d distinct:\n%s",
			s.m.CrashStateCount(), n, len(states), strings.Join(states, "--\n"))
	}
	t.Fatalf("unknown command %q", d.Cmd)
	return ""
}

func scriptChoice(t *testing.T, d *datadriven.TestData) vfs.CrashChoice {
	var fill string
	var c vfs.CrashChoice
	d.ScanArgs(t, "mode", &c.Mode)
	d.MaybeScanArgs(t, "fill", &fill)
	d.MaybeScanArgs(t, "keep", &c.Keep)
	d.MaybeScanArgs(t, "seed", &c.Seed)
	d.MaybeScanArgs(t, "file", &c.File)
	c.Fill = map[string]crash.Fill{"": crash.FillZeros, "garbage": crash.FillGarbage, "stale": crash.FillStale}[fill]
	return c
}

func (s *script) run(words []string) (err error) {
	var name string
	arg := func(i int, v any) {
		if err == nil {
			_, err = fmt.Sscan(words[i], v)
		}
	}
	arg(1, &name)
	var off, n int64
	f := s.files[name]
	switch words[0] {
	case "create":
		s.files[name], err = s.m.Create(name)
	case "open":
		s.files[name], err = s.m.OpenReadWrite(name)
	case "mkdir":
		err = s.m.MkdirAll(name)
	case "write":
		arg(2, &off)
		arg(4, &n)
		_, err = f.WriteAt(bytes.Repeat([]byte(words[3]), int(n)), off)
	case "sync":
		err = f.Sync()
	case "preallocate":
		arg(2, &off)
		arg(3, &n)
		err = f.Preallocate(off, n)
	case "syncdir":
		err = s.m.SyncDir(name)
	case "rename":
		err = s.m.Rename(name, words[2])
		s.files[words[2]] = f
	case "link":
		err = s.m.Link(name, words[2])
	case "remove":
		err = s.m.Remove(name)
	default:
		err = fmt.Errorf("unknown operation %q", words[0])
	}
	return err
}

// show prints a tree. It prints sectors of random bytes as "?".
func show(t *testing.T, m *vfs.Mem) string {
	t.Helper()
	var out strings.Builder
	var walk func(dir string)
	walk = func(dir string) {
		names, err := m.List(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			name = path.Join(dir, name)
			info, err := m.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Dir {
				fmt.Fprintf(&out, "%s/\n", name)
				walk(name)
				continue
			}
			data, err := vfs.ReadFile(m, name, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s:%s\n", name, runs(data))
		}
	}
	walk("/")
	if out.Len() == 0 {
		return "empty\n"
	}
	return out.String()
}

func runs(data []byte) string {
	type run struct {
		c byte
		n int
	}
	var all []run
	add := func(c byte, n int) {
		if len(all) > 0 && all[len(all)-1].c == c {
			all[len(all)-1].n += n
			return
		}
		all = append(all, run{c, n})
	}
	for sector := range slices.Chunk(data, 512) {
		if bytes.ContainsFunc(sector, func(r rune) bool { return r != 0 && (r < '1' || r > 'Z') }) {
			add('?', len(sector))
			continue
		}
		for _, c := range sector {
			if c == 0 {
				c = '0'
			}
			add(c, 1)
		}
	}
	if len(all) == 0 {
		return " nothing"
	}
	var out strings.Builder
	for _, r := range all {
		fmt.Fprintf(&out, " %c*%d", r.c, r.n)
	}
	return out.String()
}
