package pick

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/bound"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/keyrange"
	"github.com/tablerock-db/tablerock/internal/lsm/internal/runs"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// TestPick runs transcripts of the picker. A version is a list of lines
//
//	TIER/RUN FROM-TO BYTES [entries=N] [tombstones=N] [seq=N] [size=N] [rest=N] [most=N] [new=PERCENT]
//
// where B is the tier of the bottom, and FROM and TO are partitions of table 16, or of
// another table as in 17:b. A clipped file has a size, a rest of its entries, and
// most of its tombstones that can be in the rest.
func TestPick(t *testing.T) {
	var k *Picker
	datadriven.RunTest(t, "testdata/pick", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "version":
			k = parsePicker(t, d)
			return fmt.Sprintf("%d runs, %d overlap\n", len(k.Runs), k.Overlap)
		case "pick":
			return describe(k.Pick()) + describePolicy(k.Policy)
		case "full":
			var from []byte
			for _, a := range d.CmdArgs {
				from = pickKey(t, a.Vals[0])
			}
			return describe(k.Full(from, k.FullyCompacted))
		}
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
		return ""
	})
}

// TestPickOfManyRuns has many runs that do not overlap, in tiers of which none is full. Writers
// wait for a compaction of them, so there must be one.
func TestPickOfManyRuns(t *testing.T) {
	for _, c := range []struct {
		runs    int
		want    string
		backlog int
	}{
		{maxUpperRuns, "nothing", maxUpperRuns / 4},
		{maxUpperRuns + 1, "tier: [*, *) of 1 2 3 to 1/100, files of 125, one of them", maxUpperRuns / 4},
		{80, "tier: [*, *) of 1 2 3 to 1/100, files of 125, one of them", 20},
	} {
		var lines []string
		for n := range c.runs {
			lines = append(lines, fmt.Sprintf("%d/%d a%03d-a%03d 10", n/3, 1000-n, n, n))
		}
		// Each run overlaps a file of the bottom, so that none is moved.
		lines = append(lines, "B/1 a-b 2000")
		k := parsePicker(t, &datadriven.TestData{Input: strings.Join(lines, "\n")})
		if n := k.Runs.Backlog(k.Overlap); n != c.backlog {
			t.Errorf("%d runs: the backlog is %d, want %d", c.runs, n, c.backlog)
		}
		if got := strings.TrimSpace(describe(k.Pick())); got != c.want {
			t.Errorf("%d runs: got %s, want %s", c.runs, got, c.want)
		}
	}
}

// TestPickOfManyTiers has one run in each of many tiers, all over the same keys, as small flushes
// of new keys leave them with tiers of two runs. Writers wait for a compaction of them, so there
// must be one.
func TestPickOfManyTiers(t *testing.T) {
	var lines []string
	for n := range 19 {
		lines = append(lines, fmt.Sprintf("%d/%d a-z %d new=100", n, 1000-n, 10<<n))
	}
	k := parsePicker(t, &datadriven.TestData{Input: strings.Join(append(lines, "B/1 a-z 100000000"), "\n")})
	if n := k.Runs.Backlog(k.Overlap); n != 20 {
		t.Fatalf("the backlog is %d, want 20", n)
	}
	const want = "tier: -1 +1 as 1/100"
	if got := strings.TrimSpace(describe(k.Pick())); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestTierSinceStartsOne has a full tier, and more overlapping runs than may exist. Only one
// compaction may start: the one that is returned. None starts for fewer runs than fill a tier.
func TestTierSinceStartsOne(t *testing.T) {
	for _, c := range []struct {
		since uint64
		want  int
	}{{0, 1}, {996, 1}, {997, 0}} {
		var lines []string
		for n := range MaxTierRuns + 2 {
			lines = append(lines, fmt.Sprintf("%d/%d a-b 10", n/5, 1000-n))
		}
		k := parsePicker(t, &datadriven.TestData{Input: strings.Join(append(lines, "B/1 a-b 2000"), "\n")})
		if p := k.TierSince(c.since); (p != nil && p.Reason == "tier") != (c.want > 0) {
			t.Errorf("since %d: plan %v, want %d of a tier", c.since, p, c.want)
		}
		if n := len(k.Policy.tierCompactions); n != c.want {
			t.Errorf("since %d: %d compactions have started, want %d", c.since, n, c.want)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parsePicker(t *testing.T, d *datadriven.TestData) *Picker {
	dropped, space := make(map[uint32]bool), int64(math.MaxInt64)
	k := &Picker{
		Policy:    &Policy{},
		NewRun:    func() uint64 { return 100 },
		FileBytes: 1000,
		TierRuns:  4,
		Dropped:   func(table uint32) bool { return dropped[table] },
		Deleted:   new(keyrange.Deleted),
		Merged:    new(atomic.Int64),

		OutputLimit: func() int64 { return space },
	}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "snapshots":
			for _, v := range a.Vals {
				k.Snapshots = append(k.Snapshots, number(t, v))
			}
		case "dropped": // table
			dropped[uint32(number(t, a.Vals[0]))] = true
		case "compacting": // tier, newest input, output run
			k.Policy.tierCompactions = append(k.Policy.tierCompactions, tierCompaction{
				tier: uint32(number(t, a.Vals[0])), newest: number(t, a.Vals[1]), run: number(t, a.Vals[2]), fileBytes: int64(k.FileBytes),
			})
		case "deleted": // from, to
			for range 4 {
				k.Deleted.Add(pickKey(t, a.Vals[0]), pickKey(t, a.Vals[1]), 1<<20)
			}
		case "merged": // bytes
			k.Merged.Store(int64(number(t, a.Vals[0])))
		case "space":
			space = int64(number(t, a.Vals[0]))
		case "cursor":
			k.Policy.cursor = pickKey(t, a.Vals[0])
		default:
			t.Fatalf("%s: unknown argument %q", d.Pos, a.Key)
		}
	}
	var ssts []*runs.SST
	for i, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		ssts = append(ssts, parseSST(t, uint64(i+1), line))
	}
	var err error
	k.Runs, err = runs.New(ssts)
	must(t, err)
	k.Overlap = k.Runs.Overlap()
	return k
}

func parseSST(t *testing.T, n uint64, line string) *runs.SST {
	f := strings.Fields(line)
	tier, run, _ := strings.Cut(f[0], "/")
	from, to, _ := strings.Cut(f[1], "-")
	bytes := int64(number(t, f[2]))
	meta := manifest.File{Number: n, Size: bytes, Run: number(t, run), Entries: 100, MaxSeq: 10}
	if tier == "B" {
		meta.Tier = manifest.BottomTier
		meta.MaxSeq = 0
	} else {
		meta.Tier = uint32(number(t, tier))
	}
	rest, most := uint64(0), uint64(math.MaxUint64)
	for _, arg := range f[3:] {
		name, v, _ := strings.Cut(arg, "=")
		switch name {
		case "entries":
			meta.Entries = number(t, v)
		case "tombstones":
			meta.Tombstones = number(t, v)
		case "seq":
			meta.MaxSeq = number(t, v)
		case "rest":
			rest = number(t, v)
		case "most":
			most = number(t, v)
		case "size":
			meta.Size = int64(number(t, v))
		case "new": // percent
			meta.NewKeys = uint32(number(t, v) * manifest.AllNewKeys / 100)
		default:
			t.Fatalf("unknown argument %q", arg)
		}
	}
	first, last := uint64(1), uint64(1)
	if meta.Size > bytes {
		first = bound.ClippedFirst
	}
	meta.Smallest, meta.Largest = bound.Clip(pickKey(t, from), first), bound.Clip(pickKey(t, to), last)
	s := runs.NewSST(&runs.File{Number: n, Size: meta.Size}, meta, bytes)
	s.Entries = cmp.Or(rest, s.Entries)
	s.MostTombstones = min(most, s.MostTombstones)
	return s
}

func number(t *testing.T, s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 64)
	must(t, err)
	return n
}

func pickKey(t *testing.T, s string) []byte {
	table := uint32(16)
	if id, name, ok := strings.Cut(s, ":"); ok {
		table, s = uint32(number(t, id)), name
	}
	return codec.AppendKey(nil, table, s, "")
}

func showKey(key []byte) string {
	if key == nil {
		return "*"
	}
	table, partition, _, _ := codec.SplitKey(key)
	if table != 16 {
		return fmt.Sprintf("%d:%s", table, partition)
	}
	return string(partition)
}

func showTier(tier uint32) string {
	if tier == manifest.BottomTier {
		return "B"
	}
	return fmt.Sprint(tier)
}

func describe(p *Plan) string {
	if p == nil {
		return "nothing\n"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s:", p.Reason)
	for _, f := range p.Remove {
		fmt.Fprintf(&b, " -%d", f.Number)
	}
	for _, f := range p.Add {
		fmt.Fprintf(&b, " +%d as %s/%d", f.Number, showTier(f.Meta.Tier), f.Meta.Run)
	}
	if len(p.Inputs) > 0 {
		fmt.Fprintf(&b, " [%s, %s) of", showKey(p.Lower), showKey(p.Upper))
		for _, r := range p.Inputs {
			for _, f := range r.Within(p.Lower, p.Upper) {
				fmt.Fprintf(&b, " %d", f.Number)
			}
		}
		fmt.Fprintf(&b, " to %s/%d, files of %d", showTier(p.Tier), p.Run, p.FileBytes)
		if p.OneFile {
			b.WriteString(", one of them")
		}
	}
	return b.String() + "\n"
}

func describePolicy(p *Policy) string {
	var b strings.Builder
	for _, s := range p.tierCompactions {
		fmt.Fprintf(&b, "compacting tier %d up to run %d into %d\n", s.tier, s.newest, s.run)
	}
	if p.cursor != nil {
		fmt.Fprintf(&b, "cursor at %s\n", showKey(p.cursor))
	}
	return b.String()
}
